package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/test/bench/measure"
)

// userPrefix begins the names of viewers.
const userPrefix = "viewer-"

func isViewer(user string) bool {
	return strings.HasPrefix(user, userPrefix) || strings.HasPrefix(user, "system:serviceaccount:default:sign-in")
}

// open opens the overview as that many users while a function runs. Each page loads itself again when a provider has
// changed, as in a browser.
func (m *measurement) open(ctx context.Context, viewers int, during func(context.Context) error) error {
	token, err := m.signIn(ctx, viewers)
	if err != nil {
		return err
	}

	m.firstPaint(ctx, token, "/", ".card")

	viewing, cancel := context.WithCancel(ctx)
	defer cancel()

	var pages errgroup.Group

	for i := range viewers {
		v := &viewer{token: token, user: fmt.Sprintf("%s%d", userPrefix, i)}

		pages.Go(func() error { return v.follow(viewing) })
	}

	measure.Pause(ctx, time.Second) // they are open

	err = during(ctx)

	cancel()

	_ = pages.Wait() // canceled

	// The map comes last, because the operator then looks up what is in use.
	m.firstPaint(ctx, token, "/dependencies", ".nodes > li")

	return err
}

// signIn lets users read everything, and returns the token of an account that may impersonate them.
func (m *measurement) signIn(ctx context.Context, viewers int) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sign-in"}}
	admin := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: account.Name}},
	}

	for i := range viewers {
		admin.Subjects = append(admin.Subjects,
			rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: fmt.Sprintf("%s%d", userPrefix, i)})
	}

	for _, o := range []client.Object{account, admin} {
		if err := m.client.Create(ctx, o); err != nil {
			return "", err
		}
	}

	token := &authenticationv1.TokenRequest{}
	err := m.client.SubResource("token").Create(ctx, account, token)

	return token.Status.Token, err
}

// unverified accepts the operator's self-signed certificate.
var unverified = &http.Client{Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 100,
}}

// viewer is a user with an open page.
type viewer struct{ token, user string }

func (v *viewer) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+path, http.NoBody)
	if err != nil {
		return nil, err
	}

	request.Header.Set("Authorization", "Bearer "+v.token)
	request.Header.Set("Impersonate-User", v.user)

	return unverified.Do(request)
}

// load loads a page.
func (v *viewer) load(ctx context.Context, path string) error {
	response, err := v.get(ctx, path)
	if err != nil {
		return err
	}
	defer response.Body.Close()

	_, err = io.Copy(io.Discard, response.Body)

	return err
}

// follow keeps the overview open.
func (v *viewer) follow(ctx context.Context) error {
	response, err := v.get(ctx, "/events")
	if err != nil {
		return err
	}
	defer response.Body.Close()

	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if lines.Text() != "event: changed" {
			continue
		}

		if err := v.load(ctx, "/"); err != nil {
			return err
		}
	}

	return ctx.Err()
}

// firstPaint reports how long a page takes, with the cache of decisions and without, and when Chromium paints it. The
// selector is that of each provider on it.
func (m *measurement) firstPaint(ctx context.Context, token, path, selector string) {
	v := &viewer{token: token, user: userPrefix + "0"}

	for _, name := range []string{"first request of a user", "second request"} {
		begin := time.Now()
		err := v.load(ctx, path)
		fmt.Fprintf(os.Stderr, "%s, %s: %d ms (error: %v)\n", path, name, time.Since(begin).Milliseconds(), err)
	}

	program, err := exec.LookPath("chromium")
	if err != nil {
		return
	}

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.IgnoreCertErrors)

	ctx, cancel := chromedp.NewExecAllocator(ctx, options...)
	defer cancel()

	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()

	headers := network.Headers{"Authorization": "Bearer " + token, "Impersonate-User": v.user}

	for range 5 {
		var painted, providers float64

		err := chromedp.Run(ctx, network.Enable(), network.SetExtraHTTPHeaders(headers),
			chromedp.Navigate("https://"+address+path), chromedp.WaitVisible(selector),
			chromedp.Poll(`performance.getEntriesByName("first-contentful-paint").length > 0`, nil),
			chromedp.Evaluate(`performance.getEntriesByName("first-contentful-paint")[0].startTime`, &painted),
			chromedp.Evaluate(`document.querySelectorAll("`+selector+`").length`, &providers))
		fmt.Fprintf(os.Stderr, "%s, first contentful paint in Chromium: %.0f ms, %.0f providers (error: %v)\n",
			path, painted, providers, err)
	}
}
