package permissions_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// newMapper returns a mapper that knows Deployments, ConfigMaps and ClusterRoles.
func newMapper() *meta.DefaultRESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(
		schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		meta.RESTScopeRoot,
	)

	return mapper
}

func TestForObjects(t *testing.T) {
	verbs := []string{"get", "create", "patch", "delete"}
	configMaps := func(namespace string) permissions.Permission {
		return permissions.Permission{
			Namespace: namespace,
			Resource:  schema.GroupResource{Resource: "configmaps"},
			Verbs:     verbs,
		}
	}
	clusterRoles := permissions.Permission{
		Resource: schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		Verbs:    verbs,
	}
	deployments := permissions.Permission{
		Namespace: "tiny",
		Resource:  schema.GroupResource{Group: "apps", Resource: "deployments"},
		Verbs:     verbs,
	}

	for name, c := range map[string]struct {
		objects []*unstructured.Unstructured
		want    []permissions.Permission
	}{
		"no objects": {nil, nil},
		"one of each kind, sorted": {
			[]*unstructured.Unstructured{
				object("apps/v1", "Deployment", "tiny", "a"),
				object("v1", "ConfigMap", "tiny", "a"),
				object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "a"),
			},
			[]permissions.Permission{clusterRoles, configMaps("tiny"), deployments},
		},
		"objects of one kind in one namespace": {
			[]*unstructured.Unstructured{object("v1", "ConfigMap", "tiny", "a"), object("v1", "ConfigMap", "tiny", "b")},
			[]permissions.Permission{configMaps("tiny")},
		},
		"objects of one kind in two namespaces": {
			[]*unstructured.Unstructured{object("v1", "ConfigMap", "tiny", "a"), object("v1", "ConfigMap", "other", "a")},
			[]permissions.Permission{configMaps("other"), configMaps("tiny")},
		},
		"a namespace on an object without one": {
			[]*unstructured.Unstructured{object("rbac.authorization.k8s.io/v1", "ClusterRole", "tiny", "a")},
			[]permissions.Permission{clusterRoles},
		},
		"a kind of the provider's own": {
			[]*unstructured.Unstructured{object("example.com/v1", "Settings", "tiny", "a")},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := permissions.ForObjects(newMapper(), c.objects)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(HaveExactElements(c.want))
		})
	}

	t.Run("discovery fails", func(t *testing.T) {
		_, err := permissions.ForObjects(
			brokenMapper{}, []*unstructured.Unstructured{object("v1", "ConfigMap", "tiny", "a")})
		NewWithT(t).Expect(err).To(MatchError("look up the kind of ConfigMap a: connection refused"))
	})
}

// brokenMapper cannot reach the API server.
type brokenMapper struct{ meta.RESTMapper }

func (brokenMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("connection refused")
}

func TestPermissionString(t *testing.T) {
	g := NewWithT(t)
	g.Expect(permissions.ForHelmStorage("tiny").String()).
		To(Equal("get, list, create, update, patch, delete secrets in namespace tiny"))
	g.Expect(permissions.ForCRDs().String()).
		To(Equal("get, create, patch customresourcedefinitions.apiextensions.k8s.io"))
	g.Expect(permissions.ForNamespaceLabels().String()).To(Equal("patch namespaces"))
}
