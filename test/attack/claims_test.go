package attack

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// claimAttempts claim to be what counts for others: an installation of their provider, or a core that comes first.
var claimAttempts = []attempt{
	{"A Secret like Helm's record of another user's provider, which would keep its name", func(a *arena) string {
		return a.overruled(a.forgedFor(a.small(""), 1, "deployed", ""))
	}},
	{"A second core with automatic upgrades and a source that is silent", func(a *arena) string {
		silent := a.server(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		room := a.room()

		p := &v1alpha2.CoreProvider{ObjectMeta: named(room, v1alpha2.CoreProviderName)}
		p.Spec = automatic(small{room, a.name, "v1.0.0", ""}.resource()).Spec

		trust := a.trust(nil)
		trust.Namespace = room
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{
			URL: silent + "/x/v1.0.0/core-components.yaml", SecretRef: secretOf(trust),
		}
		a.create(trust, p)

		return a.victimIsUpgraded()
	}},
	{"Components whose policy takes an object of another release", func(a *arena) string {
		return a.taken("annotations: {capstan.dev/adoption-policy: Always}, ")
	}},
}

// overruled creates claims of the tenant to a provider, and checks that a resource of the victim can be installed
// anyway: what says that they are something else is written on that resource.
func (a *arena) overruled(claims ...client.Object) string {
	a.Helper()
	a.provide(claims...) // also what a policy would refuse

	return a.overruledFor(func(v1alpha2.Provider) {})
}

// overruledFor is overruled with a change of the resource, once the claims exist.
func (a *arena) overruledFor(change func(v1alpha2.Provider)) string {
	a.Helper()

	s := small{victim, a.name, "v1.0.0", ""}
	p := s.resource()
	change(p)
	a.provide(s.configMap(), p)

	refused := a.outcome(p)
	a.Expect(refused).To(ContainSubstring("set the annotation " + v1alpha2.InstallBesideAnnotation + ": " + tenant))

	a.Expect(bedtest.Edit(a.ctx, a.admin, p, func(p *v1alpha2.InfrastructureProvider) {
		p.SetAnnotations(map[string]string{v1alpha2.InstallBesideAnnotation: tenant})
	})).To(Succeed())
	a.Eventually(a.installed(p)).Should(Equal("v1.0.0"))

	return fmt.Sprintf("it warns, %q, and is overruled", refused)
}

// item returns an item of clusterctl's inventory for the attempt's provider.
func (a *arena) item() *unstructured.Unstructured {
	item := &unstructured.Unstructured{Object: map[string]any{
		"providerName": a.name, "type": "InfrastructureProvider", "version": "v1.0.0",
	}}
	item.SetAPIVersion("clusterctl.cluster.x-k8s.io/v1alpha3")
	item.SetKind("Provider")
	item.SetNamespace(tenant)
	item.SetName("infrastructure-" + a.name)
	item.SetLabels(map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-" + a.name})

	return item
}

// taken has components take an object of another release, and returns the operator's answer.
func (a *arena) taken(annotations string) string { return a.takenWith(annotations, nil) }

// takenWith is taken, for an object that has more annotations.
func (a *arena) takenWith(annotations string, marks map[string]string) string {
	a.Helper()

	name := "prey-" + a.name // in the namespace that the components are moved to
	prey := &corev1.ConfigMap{ObjectMeta: named(tenant, name), Data: map[string]string{"text": "the victim's"}}
	prey.Annotations = map[string]string{
		v1alpha2.HelmReleaseNameAnnotation: "other", v1alpha2.HelmReleaseNamespaceAnnotation: tenant,
	}
	maps.Copy(prey.Annotations, marks)

	a.provide(prey)
	a.never("the object of another release is overwritten", func(ctx context.Context) bool {
		found := &corev1.ConfigMap{}
		a.Expect(a.admin.Get(ctx, client.ObjectKeyFromObject(prey), found)).To(Succeed())

		return found.Data["text"] != "the victim's"
	})

	extra := "---\n" + strings.Replace(note(name, a.name+"-system", "taken"), "metadata: {", "metadata: {"+annotations, 1)

	return a.attempted(a.small("").by("installer"), a.small(extra).configMap())
}
