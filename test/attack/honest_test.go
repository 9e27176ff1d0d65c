package attack

import (
	"net/http"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// honest attempts succeed: they show that the hostile ones could, too, if nothing refused them.
var honest = []attempt{
	{"Honest: a tenant installs a provider from a ConfigMap into its own namespace", func(a *arena) string {
		p := a.small("")
		answer := a.attempted(p.by("installer"), p.configMap())
		a.expectInstalled()

		return answer
	}},
	{"Honest: a tenant installs a provider from a web server with its own certificate authority", func(a *arena) string {
		trust := a.trust(nil)
		p := a.small("").from(v1alpha2.FetchConfiguration{
			HTTP: a.server(releases(a.small(""))), SecretRef: secretOf(trust),
		})
		answer := a.attempted(p, trust)
		a.expectInstalled()

		return answer
	}},
	{"Honest: a tenant installs a chart from a registry with its own certificate authority", func(a *arena) string {
		p, trust := a.chart(map[string]string{"objects/note.yaml": note(a.name, "", "an honest value")})
		answer := a.attempted(p, trust)
		a.expectInstalled()

		return answer
	}},
	{"Honest: the operator connects to the tenant's API server, with the token in the tenant's kubeconfig",
		func(a *arena) string {
			answer := a.attemptedThere(a.kubeconfig(a.server(http.NotFoundHandler()), nil))
			a.Expect(a.received("token-of-" + a.name)).To(BeTrue())

			return answer
		}},
	{"Honest: values from the tenant's own Secret are installed, so those of others would be", func(a *arena) string {
		p := a.stealing()
		p.Spec.ConfigSecret = &v1alpha2.SecretReference{Name: a.name}
		a.create(&corev1.Secret{ObjectMeta: named(tenant, a.name), StringData: map[string]string{"value": "mine-" + a.name}})
		answer := a.attempted(p, a.stolen().configMap())
		a.Expect(a.readableByTenant(a.ctx)).To(ContainSubstring(`"text":"mine-` + a.name))

		return answer
	}},
	{"Honest: an administrator accepts a provider in the operator's namespace", func(a *arena) string {
		s := small{operatorNamespace, a.name, "v1.0.0", ""}
		p := s.by("installer")
		p.SetAnnotations(map[string]string{v1alpha2.InstallBesideAnnotation: operatorNamespace})
		a.provide(s.configMap(), p)

		answer := a.outcome(p)
		a.Expect(answer).To(HavePrefix(v1alpha2.HealthyReason))

		return answer
	}},
}

// expectInstalled checks that the attempt's ConfigMap is in the tenant's namespace.
func (a *arena) expectInstalled() {
	a.Helper()
	a.Expect(a.admin.Get(a.ctx, client.ObjectKey{Namespace: tenant, Name: a.name}, &corev1.ConfigMap{})).To(Succeed())
}

// releases serves the provider's release, whatever the version is.
func releases(p small) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "metadata.yaml"):
			_, _ = w.Write([]byte(metadata))
		case strings.HasSuffix(r.URL.Path, "components.yaml"):
			_, _ = w.Write([]byte(p.components()))
		default:
			http.NotFound(w, r)
		}
	})
}
