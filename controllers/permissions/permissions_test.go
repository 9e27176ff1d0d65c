package permissions_test

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/permissions"
)

// object returns an object with a name; the namespace may be empty.
func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)

	return o
}

// newMapper returns a mapper that knows some kinds of Kubernetes.
func newMapper() *meta.DefaultRESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)

	for kind, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                       meta.RESTScopeNamespace,
		{Version: "v1", Kind: "ConfigMap"}:                                       meta.RESTScopeNamespace,
		{Group: "batch", Version: "v1", Kind: "Job"}:                             meta.RESTScopeNamespace,
		{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}:   meta.RESTScopeNamespace,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}: meta.RESTScopeRoot,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}:        meta.RESTScopeNamespace,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}: meta.RESTScopeNamespace,
	} {
		mapper.Add(kind, scope)
	}

	return mapper
}

// widgets is the CRD of a provider.
const widgets = `
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
`

// newInstallation returns the installation of a provider without objects, as changes make it.
func newInstallation(changes ...func(*permissions.Installation)) permissions.Installation {
	provider := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: "tiny"}}
	provider.Spec.CRDs = &v1alpha2.CRDsSpec{}

	i := permissions.Installation{Mapper: newMapper(), Provider: provider, Chart: &chart.Chart{}}
	for _, change := range changes {
		change(&i)
	}

	return i
}

// withObjects adds objects to the release.
func withObjects(objects ...*unstructured.Unstructured) func(*permissions.Installation) {
	return func(i *permissions.Installation) { i.Objects = objects }
}

// withCRD adds the CRD of the kind Widget.
func withCRD(i *permissions.Installation) {
	i.Chart.CRDs = []chart.File{{Name: "crds/widgets.example.com.yaml", Data: []byte(widgets)}}
}

// annotated sets an annotation of the resource.
func annotated(annotation string) func(*permissions.Installation) {
	return func(i *permissions.Installation) { i.Provider.SetAnnotations(map[string]string{annotation: "true"}) }
}

// creatingNamespace sets the policy of an object to create its namespace.
func creatingNamespace(o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetAnnotations(map[string]string{v1alpha2.MissingNamespacePolicyAnnotation: "Create"})
	return o
}

// texts describes permissions.
func texts(all []permissions.Permission) []string {
	var texts []string
	for _, p := range all {
		texts = append(texts, p.String())
	}

	return texts
}

func TestNeeded(t *testing.T) {
	const (
		records = "get, list, create, update, patch, delete secrets in namespace tiny"
		crds    = "customresourcedefinitions.apiextensions.k8s.io widgets.example.com"
		status  = "patch customresourcedefinitions/status.apiextensions.k8s.io widgets.example.com"
	)

	for name, c := range map[string]struct {
		changes []func(*permissions.Installation)
		want    []string
	}{
		"only Helm's records": {nil, []string{records}},
		"objects by name, and without one to create them": {
			[]func(*permissions.Installation){withObjects(
				object("v1", "ConfigMap", "tiny", "b"),
				object("v1", "ConfigMap", "tiny", "a"),
				object("v1", "ConfigMap", "other", "a"),
				object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "a"),
			)},
			[]string{
				"create clusterroles.rbac.authorization.k8s.io",
				"get, patch, delete clusterroles.rbac.authorization.k8s.io a",
				"create configmaps in namespace other",
				"get, patch, delete configmaps a in namespace other",
				"create configmaps in namespace tiny",
				"get, patch, delete configmaps a, b in namespace tiny",
				records,
			},
		},
		"other namespaces, to be created": {
			[]func(*permissions.Installation){withObjects(
				creatingNamespace(object("v1", "ConfigMap", "other", "a")),
				creatingNamespace(object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "a")),
			)},
			[]string{
				"create clusterroles.rbac.authorization.k8s.io",
				"get, patch, delete clusterroles.rbac.authorization.k8s.io a",
				"create namespaces",
				"create configmaps in namespace other",
				"get, patch, delete configmaps a in namespace other",
				records,
			},
		},
		"no namespace, if objects are in that of the release": {
			[]func(*permissions.Installation){withObjects(creatingNamespace(object("v1", "ConfigMap", "tiny", "a")))},
			[]string{"create configmaps in namespace tiny", "get, patch, delete configmaps a in namespace tiny", records},
		},
		"the autoscalers of a Deployment": {
			[]func(*permissions.Installation){withObjects(object("apps/v1", "Deployment", "tiny", "a"))},
			[]string{
				"create deployments.apps in namespace tiny",
				"get, patch, delete deployments.apps a in namespace tiny",
				"list horizontalpodautoscalers.autoscaling in namespace tiny",
				records,
			},
		},
		"CRDs by name, and all their objects": {
			[]func(*permissions.Installation){withCRD},
			[]string{
				"get, create, patch " + crds,
				status,
				"list, get, patch widgets.example.com",
				"get, patch widgets/status.example.com",
				records,
			},
		},
		"CRDs that are not managed": {
			[]func(*permissions.Installation){withCRD, func(i *permissions.Installation) {
				i.Provider.GetSpec().CRDs.Policy = v1alpha2.CRDsNone
			}},
			[]string{"get " + crds, "list widgets.example.com", records},
		},
		"a CRD that is excluded": {
			[]func(*permissions.Installation){withCRD, func(i *permissions.Installation) {
				i.Provider.GetSpec().CRDs.Unmanaged = []string{"widgets.example.com"}
			}},
			[]string{"get " + crds, "list widgets.example.com", records},
		},
		"a CRD that only an earlier version had": {
			[]func(*permissions.Installation){func(i *permissions.Installation) {
				i.Provider.GetStatus().OrphanedCRDs = []string{"widgets.example.com"}
				i.Provider.GetSpec().CRDs.Policy = v1alpha2.CRDsNone
			}},
			[]string{"get " + crds, "list widgets.example.com", records},
		},
		"an object of the provider's own kind": {
			[]func(*permissions.Installation){withCRD, withObjects(object("example.com/v1", "Widget", "tiny", "own"))},
			[]string{
				"get, create, patch " + crds,
				status,
				"list, get, patch widgets.example.com",
				"get, patch widgets/status.example.com",
				records,
				"create widgets.example.com in namespace tiny",
				"get, patch, delete widgets.example.com own in namespace tiny",
			},
		},
		"an object of a kind that does not exist": {
			[]func(*permissions.Installation){withObjects(object("example.com/v1", "Widget", "tiny", "own"))},
			[]string{records},
		},
		"labels of the namespace": {
			[]func(*permissions.Installation){func(i *permissions.Installation) {
				i.Chart.Files = []chart.File{namespaceFile("labels: {a: b}")}
			}},
			[]string{"get, patch namespaces tiny", records},
		},
		"annotations of the namespace from a variable": {
			[]func(*permissions.Installation){func(i *permissions.Installation) {
				i.Values = map[string]any{"variables": map[string]any{"A": "b"}}
				i.Chart.Files = []chart.File{namespaceFile("annotations: {a: ${A}}")}
			}},
			[]string{"get, patch namespaces tiny", records},
		},
		"a namespace without labels": {
			[]func(*permissions.Installation){func(i *permissions.Installation) {
				i.Chart.Files = []chart.File{namespaceFile("")}
			}},
			[]string{records},
		},
		"another cluster": {
			[]func(*permissions.Installation){func(i *permissions.Installation) { i.Remote = true }},
			[]string{"create namespaces", "get, patch namespaces tiny", records},
		},
		"a removal of CRDs": {
			[]func(*permissions.Installation){withCRD, annotated(v1alpha2.DeleteCRDsAnnotation)},
			[]string{
				"get, create, patch, delete " + crds,
				status,
				"list, get, patch widgets.example.com",
				"get, patch widgets/status.example.com",
				records,
			},
		},
		"a removal of the namespace": {
			[]func(*permissions.Installation){annotated(v1alpha2.DeleteNamespaceAnnotation)},
			[]string{"delete namespaces tiny", records},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			needed, err := newInstallation(c.changes...).Needed()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(texts(needed)).To(HaveExactElements(c.want))
		})
	}

	t.Run("discovery fails", func(t *testing.T) {
		i := newInstallation(withObjects(object("v1", "ConfigMap", "tiny", "a")))
		i.Mapper = brokenMapper{}
		_, err := i.Needed()
		NewWithT(t).Expect(err).To(MatchError("look up the kind of ConfigMap a: connection refused"))
	})
}

// brokenMapper cannot reach the API server.
type brokenMapper struct{ meta.RESTMapper }

func (brokenMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("connection refused")
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha2.ProviderSpec)
		want   []string
	}{
		"nothing": {func(*v1alpha2.ProviderSpec) {}, nil},
		"variables and a kubeconfig": {
			func(s *v1alpha2.ProviderSpec) {
				s.SecretName = "variables"
				s.KubeConfig = &v1alpha2.KubeConfig{}
				s.KubeConfig.SecretRef.Name = "kubeconfig"
			},
			[]string{"get secrets kubeconfig, variables in namespace tiny"},
		},
		"variables in another namespace": {
			func(s *v1alpha2.ProviderSpec) {
				s.ConfigSecret = &v1alpha2.SecretReference{Name: "variables", Namespace: "other"}
			},
			[]string{"get secrets variables in namespace other"},
		},
		"additional manifests": {
			func(s *v1alpha2.ProviderSpec) { s.AdditionalManifests = &v1alpha2.ConfigMapReference{Name: "more"} },
			[]string{"get configmaps more in namespace tiny"},
		},
		"ConfigMaps with versions": {
			func(s *v1alpha2.ProviderSpec) {
				s.FetchConfig = &v1alpha2.FetchConfiguration{Selector: &metav1.LabelSelector{}}
			},
			[]string{"get, list configmaps in namespace tiny", "get, list secrets in namespace tiny"},
		},
		"a registry": {
			func(s *v1alpha2.ProviderSpec) {
				s.FetchConfig = &v1alpha2.FetchConfiguration{OCI: "oci://registry.example.com/tiny"}
				s.FetchConfig.SecretRef = &v1alpha2.LocalSecretReference{Name: "credentials"}
			},
			[]string{
				"get secrets in namespace tiny",
				"get secrets credentials in namespace tiny",
				"get serviceaccounts in namespace tiny",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			i := newInstallation()
			c.change(i.Provider.GetSpec())
			read, err := i.Read()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(texts(read)).To(HaveExactElements(c.want))
		})
	}
}

func TestMarkdownTable(t *testing.T) {
	g := NewWithT(t)
	lines := strings.Split(strings.TrimSpace(permissions.MarkdownTable()), "\n")
	g.Expect(len(lines)).To(BeNumerically(">", 15))

	for _, line := range lines {
		g.Expect(strings.Count(line, "|")).To(Equal(6), line)
	}
}

// namespaceFile returns the Namespace of a provider's chart with metadata in flow style.
func namespaceFile(metadata string) chart.File {
	return chart.File{Name: "objects/namespace-a.yaml", Data: []byte(
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: a, " + metadata + "}")}
}
