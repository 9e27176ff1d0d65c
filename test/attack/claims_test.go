package attack

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// claimAttempts claim to be what counts for others: an installation of their provider, or a core that comes first.
var claimAttempts = []attempt{
	{"A Secret like Helm's record of another user's provider, which would keep its name", func(a *arena) string {
		return a.overruled(a.forgedFor(a.small(""), 1, "deployed", ""))
	}},
	{"A Deployment with the label of another user's provider, which would keep its name", func(a *arena) string {
		return a.overruled(a.labeled())
	}},
	{"A Secret and a Deployment that claim the same", func(a *arena) string {
		return a.overruled(a.forgedFor(a.small(""), 1, "deployed", ""), a.labeled())
	}},
	{"A resource that is not installed, with a record that says so", func(a *arena) string {
		squatter := a.small("").by("installer")
		squatter.Spec.FetchConfig = &v1alpha2.FetchConfiguration{URL: "https://sources.invalid/x/v1.0.0/components.yaml"}

		return a.overruled(a.forgedFor(a.small(""), 1, "deployed", ""), squatter)
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
	{"The same, with an escaped name", func(a *arena) string {
		return a.taken(`annotations: {"capstan.dev/adoption\x2dpolicy": Always}, `)
	}},
	{"The same, with a name in base64", func(a *arena) string {
		return a.taken("annotations: {!!binary Y2Fwc3Rhbi5kZXYvYWRvcHRpb24tcG9saWN5: Always}, ")
	}},
}

// labeled returns a Deployment without replicas that has the label of the attempt's provider.
func (a *arena) labeled() *appsv1.Deployment {
	label := map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-" + a.name}
	d := &appsv1.Deployment{ObjectMeta: named(tenant, a.name)}
	d.Labels = label
	d.Spec.Replicas = ptr.To[int32](0)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: label}
	d.Spec.Template.Labels = label
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "registry.example.com/manager"}}

	return d
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

// converted returns a CustomResourceDefinition that has the label of the attempt's provider, and whose objects a
// Service of the tenant converts.
func (a *arena) converted() *apiextensionsv1.CustomResourceDefinition {
	const group = "claims.example.com"

	plural := a.name + "s"
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: named("", plural+"."+group)}
	crd.Labels = map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-" + a.name}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group,
		Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Kind: strings.ToUpper(a.name), ListKind: strings.ToUpper(a.name) + "List", Plural: plural, Singular: a.name,
		},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		}},
		Conversion: &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"},
				ClientConfig: &apiextensionsv1.WebhookClientConfig{
					Service: &apiextensionsv1.ServiceReference{Namespace: tenant, Name: a.name},
				},
			},
		},
	}

	return crd
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
