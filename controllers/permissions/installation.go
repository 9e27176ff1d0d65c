package permissions

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/crds"
)

// Installation is the content that an account installs.
type Installation struct {
	// Mapper knows the kinds of the cluster.
	Mapper meta.RESTMapper
	// Provider is the resource.
	Provider v1alpha2.Provider
	// Chart of the wanted version.
	Chart *chart.Chart
	// Values are those of the release, for the chart.
	Values map[string]any
	// Objects are those of the release: of the wanted revision and, for an upgrade, of the installed one.
	Objects []*unstructured.Unstructured
	// Managed are the names of CRDs that are not part of the provider and whose objects it manages.
	Managed []string
	// Remote reports whether the provider is installed in another cluster than the resource's.
	Remote bool
}

// target is what a row of the table is about: some objects of a resource, or all if it has no names.
type target struct {
	namespace string
	resource  schema.GroupResource
	names     []string
}

var (
	secretResource    = schema.GroupResource{Resource: "secrets"}
	namespaceResource = schema.GroupResource{Resource: "namespaces"}
	crdResource       = schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}
	crdStatusResource = schema.GroupResource{Group: crdResource.Group, Resource: crdResource.Resource + "/status"}
)

// objectsOf returns a target for each resource and namespace of objects, with the objects' names. It
// leaves out objects whose kind neither the cluster nor the chart knows: they cannot be applied.
func (i Installation) objectsOf(objects []*unstructured.Unstructured) ([]target, error) {
	type key struct {
		namespace string
		resource  schema.GroupResource
	}

	var (
		targets []target
		index   = map[key]int{}
	)

	defined := sync.OnceValue(func() map[schema.GroupKind]crds.DefinedKind { return crds.DefinedKinds(i.Chart.CRDs) })

	for _, o := range objects {
		resource, namespaced, err := i.resourceOf(o.GroupVersionKind(), defined)
		if meta.IsNoMatchError(err) {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("look up the kind of %s %s: %w", o.GetKind(), o.GetName(), err)
		}

		k := key{resource: resource}
		if namespaced {
			k.namespace = o.GetNamespace()
		}

		if _, found := index[k]; !found {
			index[k] = len(targets)
			targets = append(targets, target{namespace: k.namespace, resource: k.resource})
		}

		t := &targets[index[k]]
		t.names = append(t.names, o.GetName())
	}

	return targets, nil
}

// resourceOf returns the resource of a kind, and whether it is namespaced. A kind that the cluster does
// not know yet may be one that the chart defines.
func (i Installation) resourceOf(
	kind schema.GroupVersionKind, defined func() map[schema.GroupKind]crds.DefinedKind,
) (schema.GroupResource, bool, error) {
	mapping, err := i.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err == nil {
		return mapping.Resource.GroupResource(), mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
	}

	if known, found := defined()[kind.GroupKind()]; found && meta.IsNoMatchError(err) {
		return known.Resource, known.Namespaced, nil
	}

	return schema.GroupResource{}, false, err
}

// crdName returns the name of a CRD of an installable chart, which is that of its file.
func crdName(file chart.File) string {
	return strings.TrimSuffix(strings.TrimPrefix(file.Name, "crds/"), ".yaml")
}

// crds returns the names of the provider's CRDs: those of the chart, and those that only earlier
// versions included.
func (i Installation) crds() []string {
	names := make([]string, 0, len(i.Chart.CRDs))
	for _, file := range i.Chart.CRDs {
		names = append(names, crdName(file))
	}

	return union(names, i.Provider.GetStatus().OrphanedCRDs)
}

// managed returns the names of the chart's CRDs that are applied.
func (i Installation) managed() []string {
	spec := i.Provider.GetSpec().CRDs
	if spec == nil {
		spec = &v1alpha2.CRDsSpec{}
	}

	if spec.Policy == v1alpha2.CRDsNone {
		return nil
	}

	return slices.DeleteFunc(i.crds(), func(name string) bool { return slices.Contains(spec.Unmanaged, name) })
}

// createsNamespace reports whether an object is in another namespace than the release, which is created if it does not
// exist.
func (i Installation) createsNamespace(o *unstructured.Unstructured) bool {
	namespace := o.GetNamespace()

	return namespace != "" && namespace != i.Provider.GetNamespace() && asks.CreatesNamespace(o)
}

// changesNamespace reports whether the release's namespace gets labels or annotations.
func (i Installation) changesNamespace() (bool, error) {
	labels, annotations, err := chartgen.Namespace(i.Chart, i.Values)

	return len(labels)+len(annotations) > 0, err
}
