package attack

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// repositoryAttempts plant charts for others.
var repositoryAttempts = []attempt{
	{"A version of a known provider that is not released yet, and another namespace that asks for it",
		func(a *arena) string {
			mine := small{tenant, "aws", "v2.11.99", ""}
			cm := mine.configMap()
			cm.Data[v1alpha2.ConfigMapMetadataKey] = strings.ReplaceAll(metadata, "major: 1, minor: 1", "major: 2, minor: 11")
			answer := a.attempted(mine.by("installer"), cm)

			theirs := &v1alpha2.InfrastructureProvider{ObjectMeta: named(victim, "aws")}
			theirs.Spec.Version = mine.version
			theirs.Spec.KubeConfig = nil

			a.Expect(a.tenant.Delete(a.ctx, mine.resource())).To(Succeed())
			a.removal(mine.resource())
			a.Expect(a.admin.Create(a.ctx, theirs)).To(Succeed())
			a.neverExists(&corev1.ConfigMap{ObjectMeta: named(victim, "aws")})

			return answer + " | the other namespace: " + a.outcome(theirs)
		}},
}

// surfaceAttempts use what the operator and its roles offer themselves.
var surfaceAttempts = []attempt{
	{"Metrics and profiles of the operator without a login, and with the tenant's", func(a *arena) string {
		var answers []string

		for _, path := range []string{"/metrics", "/debug/pprof/heap", "/debug/pprof/cmdline"} {
			for _, scheme := range []string{"http", "https"} {
				for _, token := range []string{"", a.tokenOf("installer")} {
					answers = append(answers, a.get(scheme+"://"+a.metrics+path, token))
				}
			}
		}

		return "GET /metrics: " + strings.Join(answers, ", ")
	}},
	{"An editor of providers that writes status and finalizers", func(a *arena) string {
		p := a.small("").resource()
		a.attempted(p, a.small("").configMap())

		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"contract":"forged"}}`))
		err := a.tenant.Status().Patch(a.ctx, p.DeepCopy(), patch)
		a.Expect(err).To(MatchError(ContainSubstring("forbidden")))
		a.Expect(a.tenant.SubResource("finalizers").Update(a.ctx, p.DeepCopy())).To(MatchError(ContainSubstring("forbidden")))

		return err.Error()
	}},
}

// get returns the answer to a request for the operator's own surface, which must not be its content.
func (a *arena) get(address, token string) string {
	c := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(a.ctx, http.MethodGet, address, nil)
	a.Expect(err).NotTo(HaveOccurred())

	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}

	res, err := c.Do(request)
	if err != nil {
		return "no answer"
	}
	defer res.Body.Close()

	a.Expect(res.StatusCode).NotTo(Equal(http.StatusOK), "%s answers", address)

	return fmt.Sprint(res.StatusCode)
}

// tokenOf returns a token of an account of the tenant.
func (a *arena) tokenOf(name string) string {
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: named(tenant, name)}
	a.Expect(a.admin.SubResource("token").Create(a.ctx, account, token)).To(Succeed())

	return token.Status.Token
}
