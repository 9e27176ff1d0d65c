package adopt

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// manager returns a Deployment of a provider with these images, as clusterctl applies it.
func manager(namespace, label string, images ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: label, Labels: map[string]string{
		v1alpha2.ClusterctlLabel: "", v1alpha2.ClusterctlProviderLabel: label,
	}}}

	names := []string{"proxy", "manager"}
	for i, image := range images {
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers,
			corev1.Container{Name: names[len(names)-len(images)+i], Image: image})
	}

	return d
}

// item returns an item of the inventory, as clusterctl writes it, with further labels.
func item(p v1alpha2.Provider, version string, labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"providerName": p.GetName(), "type": string(p.ProviderType()), "version": version,
	}}
	o.SetGroupVersionKind(clusterctlv1.GroupVersion.WithKind("Provider"))
	o.SetNamespace(p.GetNamespace())
	o.SetName(v1alpha2.Label(p))
	o.SetLabels(labels)

	if manager := p.GetSpec().Manager; manager != nil {
		o.Object["watchedNamespace"] = manager.CacheNamespace
	}

	return o
}

// provider returns the resource of an infrastructure provider.
func provider(namespace, name string) *v1alpha2.InfrastructureProvider {
	return &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestFindByClusterctl(t *testing.T) {
	core := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: "cluster-api"}}
	watching := provider("capa-system", "aws")
	watching.Spec.Manager = &v1alpha2.ManagerSpec{}
	watching.Spec.Manager.CacheNamespace = "team-a"
	ofHelm := manager("capd-system", "infrastructure-docker", "example.com/x:v1.0.0")
	ofHelm.Annotations = map[string]string{v1alpha2.HelmReleaseNameAnnotation: "docker"}

	for name, c := range map[string]struct {
		objects []client.Object
		want    []string // full names and versions
		watched string
	}{
		"nothing": {},
		"the inventory, core first": {
			objects: []client.Object{item(watching, "v2.0.0", nil), item(core, "v1.0.0", nil)},
			want: []string{
				"CoreProvider capi-system/cluster-api v1.0.0", "InfrastructureProvider capa-system/aws v2.0.0",
			},
			watched: "team-a",
		},
		"items that Capstan keeps": {
			objects: []client.Object{
				item(core, "v1.0.0", map[string]string{v1alpha2.ManagedByLabel: v1alpha2.FieldOwner}),
				item(watching, "v2.0.0", nil),
			},
			want:    []string{"InfrastructureProvider capa-system/aws v2.0.0"},
			watched: "team-a",
		},
		"Deployments without an inventory": {
			objects: []client.Object{
				manager("capa-system", "infrastructure-aws", "example.com/proxy:v9.9.9", "example.com/aws:v2.0.0@sha256:"+
					"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
				ofHelm,
			},
			want: []string{"InfrastructureProvider capa-system/aws v2.0.0"},
		},
		"a Deployment that the inventory does not have": {
			objects: []client.Object{
				item(core, "v1.0.0", map[string]string{v1alpha2.ManagedByLabel: v1alpha2.FieldOwner}),
				item(watching, "v2.0.0", nil), manager("capi-system", "cluster-api", "example.com/core:v1.0.0"),
				manager("capa-system", "infrastructure-aws", "example.com/aws:v2.0.0"),
				manager("capg-system", "infrastructure-gcp", "example.com/gcp:v1.8.0"), ofHelm,
			},
			want: []string{
				"InfrastructureProvider capa-system/aws v2.0.0", "InfrastructureProvider capg-system/gcp v1.8.0",
			},
			watched: "team-a",
		},
		"a Deployment whose version is unknown": {
			objects: []client.Object{manager("capa-system", "infrastructure-aws", "example.com/aws:latest")},
			want:    []string{"InfrastructureProvider capa-system/aws "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())

			kind := item(core, "", nil).GroupVersionKind()
			scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind("ProviderList"), &unstructured.UnstructuredList{})

			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.objects...).Build()

			found, err := clusterctl{}.Find(t.Context(), &cli.Cluster{Client: reader})
			g.Expect(err).NotTo(HaveOccurred())

			var names []string

			for _, i := range found.Installations {
				names = append(names, v1alpha2.FullName(i.Provider)+" "+i.Provider.GetSpec().Version)

				if i.Provider.GetSpec().Manager != nil {
					g.Expect(i.Provider.GetSpec().Manager.CacheNamespace).To(Equal(c.watched))
				}
			}

			g.Expect(names).To(Equal(c.want))
		})
	}
}

// TestSelected: what is named is adopted, is adopted already, or is an error.
func TestSelected(t *testing.T) {
	unknown := Installation{Provider: provider("capg-system", "gcp"), Problem: errors.New("its version is unknown")}
	aws, docker := Installation{Provider: provider("a", "aws")}, Installation{Provider: provider("d", "docker")}

	for name, c := range map[string]struct {
		found     Found
		arguments []string
		want      string
		err       string
	}{
		"all": {
			found: Found{Installations: []Installation{aws, docker}}, want: "infrastructure-aws, infrastructure-docker",
		},
		"one": {Found{Installations: []Installation{aws, unknown}}, []string{"aws"}, "infrastructure-aws", ""},
		"one that Capstan manages": {
			found:     Found{Installations: []Installation{aws}, Managed: []Installation{docker}},
			arguments: []string{"docker"},
		},
		"one of both": {
			Found{Installations: []Installation{aws}, Managed: []Installation{docker}}, []string{"docker", "aws"},
			"infrastructure-aws", "",
		},
		"nothing is left": {found: Found{Managed: []Installation{docker}}},
		"one whose version is unknown": {
			Found{Installations: []Installation{aws, unknown}}, []string{"gcp"}, "", "its version is unknown",
		},
		"all, and a version is unknown": {
			found: Found{Installations: []Installation{aws, unknown}}, err: "its version is unknown",
		},
		"another one, and nothing is left": {
			Found{Managed: []Installation{docker}}, []string{"infrastructure-gcp"}, "",
			"infrastructure-gcp is not one of the installed providers that Capstan does not manage: there are none",
		},
		"another one": {
			Found{Installations: []Installation{aws}}, []string{"gcp"}, "",
			"gcp is not one of the installed providers that Capstan does not manage: infrastructure-aws",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			chosen, err := selected(&c.found, c.arguments)
			if c.err != "" {
				g.Expect(err).To(MatchError(c.err))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(labels(chosen)).To(Equal(c.want))
		})
	}
}
