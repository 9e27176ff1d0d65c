package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

// variableValue is a value of a variable, which no page may contain.
const variableValue = "v4lu3-of-a-variable"

// unverified accepts the self-signed certificate of the operator.
var unverified = &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
}

// signIn is a proxy that signs users in, and shows them the status page of the operator. It proves what it is by the
// token of its own ServiceAccount.
type signIn struct {
	page  *url.URL
	token string

	mu     sync.Mutex
	bodies strings.Builder // of all pages that users got
}

// as returns the URL of the page for a user, until the container of specs ends.
func (s *signIn) as(user string) string {
	proxy := &httputil.ReverseProxy{
		Transport: unverified,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(s.page)
			r.Out.Header.Set("Authorization", "Bearer "+s.token)
			r.Out.Header.Set("Impersonate-User", user)
		},
		ModifyResponse: func(r *http.Response) error {
			if strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
				return nil
			}

			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))

			s.mu.Lock()
			defer s.mu.Unlock()

			s.bodies.Write(body)

			return err
		},
		// The connection to an operator that has stopped ends without an answer, as that of a browser would.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewServer(proxy)

	DeferCleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})

	return server.URL + "/"
}

// tokenOf creates a ServiceAccount, and returns a token of it.
func (w *world) tokenOf(ctx context.Context, name string) string {
	GinkgoHelper()

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	Expect(w.client.Create(ctx, account)).To(Succeed())

	token := &authenticationv1.TokenRequest{}
	Expect(w.client.SubResource("token").Create(ctx, account, token)).To(Succeed())

	return token.Status.Token
}

// grant creates a role, in a namespace unless that is empty, and binds it to a subject.
func (w *world) grant(ctx context.Context, name, namespace string, to rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()

	object := metav1.ObjectMeta{Name: name, Namespace: namespace}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
	objects := []client.Object{
		&rbacv1.Role{ObjectMeta: object, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: object, RoleRef: ref, Subjects: []rbacv1.Subject{to}},
	}

	if namespace == "" {
		ref.Kind = "ClusterRole"
		objects = []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: object, Rules: rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: object, RoleRef: ref, Subjects: []rbacv1.Subject{to}},
		}
	}

	for _, o := range objects {
		Expect(w.client.Create(ctx, o)).To(Succeed())
	}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}
}

// status requests a URL with headers, and returns the status code and the body. The code is 0 without an answer.
func status(ctx context.Context, target string, headers http.Header) (int, string) {
	GinkgoHelper()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	Expect(err).NotTo(HaveOccurred())

	request.Header = headers

	response, err := unverified.RoundTrip(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}

	return response.StatusCode, string(body)
}

var _ = Describe("The status page of the operator", Ordered, func() {
	var (
		w       *world
		flag    string
		proxy   *signIn
		docker  v1alpha2.Provider
		jane    = "oidc:jane"
		janeRun string // a token of an account
	)

	BeforeAll(func(ctx SpecContext) {
		w = newWorld(ctx)
		address := fmt.Sprintf("127.0.0.1:%d", freePort())
		flag = "--ui-bind-address=" + address
		w.start(flag)

		core := w.install(ctx, samples, harness.Wanted{Label: "cluster-api"})
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))

		docker = w.install(ctx, samples, harness.Wanted{
			Label: "infrastructure-docker", Version: "v1.0.0",
			Variables: map[string]string{"CAPD_DOCKER_HOST": variableValue},
		})
		Eventually(w.read(ctx, docker)).Should(beReady("v1.0.0"))

		newer, err := harness.Load(ctx, samples, harness.Wanted{Label: "infrastructure-docker", Version: "v1.1.0"})
		Expect(err).NotTo(HaveOccurred())
		Expect(newer.Prepare(ctx, w.client)).To(Succeed())

		proxy = &signIn{page: &url.URL{Scheme: "https", Host: address}, token: w.tokenOf(ctx, "proxy")}
		w.grant(ctx, "sign-in", "", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: "proxy"},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}})
		w.grant(ctx, "reader", docker.GetNamespace(), user(jane),
			rbacv1.PolicyRule{
				APIGroups: []string{v1alpha2.GroupVersion.Group}, Resources: []string{"infrastructureproviders"},
				Verbs: []string{"list"},
			},
			rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}})
		w.grant(ctx, "everything", "", user("oidc:root"),
			rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})

		janeRun = w.tokenOf(ctx, "jane")
	})

	It("is for users whom the API server knows", func(ctx SpecContext) {
		own := http.Header{"Authorization": {"Bearer " + janeRun}}
		spoofed := http.Header{"X-Remote-User": {"oidc:root"}, "X-Forwarded-User": {"oidc:root"}}
		acting := http.Header{"Authorization": own["Authorization"], "Impersonate-User": {"oidc:root"}}
		group := http.Header{
			"Authorization": {"Bearer " + proxy.token}, "Impersonate-User": {jane}, "Impersonate-Group": {"system:masters"},
		}

		for _, path := range []string{"/", "/" + providerPath(docker), "/events"} {
			target := proxy.page.String() + path

			code, _ := status(ctx, target, spoofed)
			Expect(code).To(Equal(http.StatusUnauthorized), "headers that prove nothing")

			code, _ = status(ctx, target, http.Header{"Authorization": {"Bearer " + janeRun + "x"}})
			Expect(code).To(Equal(http.StatusUnauthorized), "a token with a wrong signature")

			code, _ = status(ctx, target, acting)
			Expect(code).To(Equal(http.StatusForbidden), "a user who may not impersonate others")

			code, _ = status(ctx, target, group)
			Expect(code).To(Equal(http.StatusForbidden), "a group that the proxy may not impersonate")

			code, body := status(ctx, target, own)
			Expect(code).To(Equal(http.StatusForbidden))
			Expect(body).To(ContainSubstring("User system:serviceaccount:default:jane may list no provider in this cluster."))

			code, _ = status(ctx, strings.Replace(target, "https:", "http:", 1), own)
			Expect(code).To(BeElementOf(0, http.StatusBadRequest), "without TLS")
		}
	})

	It("shows a limited user in a browser what it may read, follows it, and survives a restart", func(ctx SpecContext) {
		tab := openTab(ctx, proxy.as(jane))
		Eventually(tab.text).WithArguments("main").Should(
			And(ContainSubstring("infrastructure-docker"), Not(ContainSubstring("cluster-api"))))
		Eventually(tab.text).WithArguments("#viewer").Should(Equal(
			"You see what " + jane + " may read. Providers that you may not list are left out."))

		tab.follow(`a[href='/` + providerPath(docker) + `']`)
		tab.evaluate(`window.same = true`)
		Eventually(tab.text).WithArguments("#images").Should(ContainSubstring("capd-manager:v1.0.0"))
		Eventually(tab.text).WithArguments("#summary").Should(And(
			ContainSubstring("of the release are not shown"),
			ContainSubstring("secrets is forbidden: user "+jane+" may not get them"),
			ContainSubstring("events is forbidden"),
		))
		Eventually(tab.text).WithArguments("#history").Should(ContainSubstring("the history in the status of the resource"))
		Expect(tab.text("#variables")).NotTo(ContainSubstring("CAPD_DOCKER_HOST"))

		update(ctx, w, docker, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(tab.text).WithArguments("#images").Should(ContainSubstring("capd-manager:v1.1.0"))

		Expect(w.operator.Stop()).To(Succeed())
		Eventually(tab.text).WithArguments("#connection").
			Should(HavePrefix("Connection lost, trying again. You see the state of"))
		w.start(flag)
		Eventually(tab.text).WithArguments("#connection").Should(BeEmpty())

		update(ctx, w, docker, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.0.0" })
		Eventually(tab.text).WithArguments("#summary").Should(ContainSubstring("wants v1.0.0"))
		Expect(tab.evaluate(`window.same`)).To(BeTrue(), "the page was not loaded again")
		tab.expectClean()
	})

	It("shows an administrator everything but values, and makes no requests when it is closed", func(ctx SpecContext) {
		root := proxy.as("oidc:root")
		code, body := status(ctx, root, http.Header{})
		Expect(code).To(Equal(http.StatusOK))
		Expect(body).To(And(ContainSubstring("cluster-api"), Not(ContainSubstring("left out"))))

		Eventually(func() string {
			_, body := status(ctx, root+providerPath(docker), http.Header{})
			return body
		}).Should(And(
			ContainSubstring("CAPD_DOCKER_HOST"), ContainSubstring("by capstan"), ContainSubstring("Upgrade"),
			ContainSubstring("dockerclusters.infrastructure.cluster.x-k8s.io"), Not(ContainSubstring("Not known")),
		))
		Expect(proxy.bodies.String()).NotTo(Or(BeEmpty(), ContainSubstring(variableValue)))

		reviews := func() int {
			found, err := w.bed.Requests(func(r bed.Request) bool { return strings.HasPrefix(r.Resource, "selfsubject") })
			Expect(err).NotTo(HaveOccurred())

			return len(found)
		}
		Expect(reviews()).To(BeNumerically(">", 0))
		Consistently(reviews, quietPeriod).Should(Equal(reviews()))
	})
})
