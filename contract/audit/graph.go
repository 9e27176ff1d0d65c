package audit

import (
	"cmp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/contract"
)

// graph is a snapshot with its objects linked to each other.
type graph struct {
	snapshot *Snapshot
	options  Options

	kinds   []*kind
	byGroup map[schema.GroupKind]*kind
	// objects are sorted by kind, namespace and name.
	objects []*object
	byUID   map[types.UID]*object
	byKey   map[objectKey]*object
	links   []link
	targets map[target]*object
	secrets map[types.NamespacedName]*Secret
	// unread are the names of what was not read completely.
	unread map[string]bool
}

// kind is a kind of objects.
type kind struct {
	schema.GroupKind

	crd *apiextensionsv1.CustomResourceDefinition
	// provider is the label of the provider; empty if it is unknown.
	provider string
	// additional is set if the CRD is not part of the provider. The contracts of Cluster API do not apply to it.
	additional bool
	// contract is the one that core uses for the kind, and version the API version that it reads; empty if the CRD names
	// none.
	contract, version string
}

// object is an object with its kind.
type object struct {
	*unstructured.Unstructured

	kind *kind
}

type objectKey struct {
	schema.GroupKind
	types.NamespacedName
}

func newGraph(s *Snapshot, o Options) *graph {
	g := &graph{
		snapshot: s,
		options:  o,
		byGroup:  map[schema.GroupKind]*kind{},
		byUID:    map[types.UID]*object{},
		byKey:    map[objectKey]*object{},
		targets:  map[target]*object{},
		secrets:  map[types.NamespacedName]*Secret{},
		unread:   map[string]bool{},
	}

	for _, u := range s.Unread {
		g.unread[u.Name] = true
	}

	g.addKinds()
	g.addObjects()

	for i := range s.Secrets {
		secret := &s.Secrets[i]
		g.secrets[types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}] = secret
	}

	g.addLinks()

	return g
}

func (g *graph) addKinds() {
	core := coreContract(g.snapshot.CRDs)

	for _, crd := range g.snapshot.CRDs {
		k := &kind{
			GroupKind: schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind},
			crd:       crd,
			provider:  crd.Labels[v1alpha2.ClusterctlProviderLabel],
		}
		k.contract, k.version = contract.Implementation(crd.Labels, core)

		if manager := g.snapshot.Managed[crd.Name]; manager != "" {
			k.provider, k.additional = manager, true
		}

		g.kinds = append(g.kinds, k)
		g.byGroup[k.GroupKind] = k
	}

	slices.SortFunc(g.kinds, func(a, b *kind) int { return cmp.Compare(a.crd.Name, b.crd.Name) })
}

func (g *graph) addObjects() {
	for _, u := range g.snapshot.Objects {
		k := g.byGroup[u.GroupVersionKind().GroupKind()]
		if k == nil {
			continue // its CRD was deleted meanwhile
		}

		o := &object{u, k}
		g.objects = append(g.objects, o)
		g.byUID[u.GetUID()] = o
		g.byKey[objectKey{k.GroupKind, types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}}] = o
	}

	slices.SortFunc(g.objects, func(a, b *object) int {
		return cmp.Or(
			cmp.Compare(a.kind.crd.Name, b.kind.crd.Name),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
}

// place returns the place of findings about a CRD.
func (k *kind) place() place {
	p := place{Kind: "CustomResourceDefinition", Object: k.crd.Name}
	if k.provider != "" {
		p.Providers = []string{k.provider}
	}

	return p
}

// isTemplate reports whether the objects are templates, which describe other objects.
func (k *kind) isTemplate() bool { return strings.HasSuffix(k.Kind, clusterv1.TemplateSuffix) }

// isNamespaced reports whether the objects belong to namespaces.
func (k *kind) isNamespaced() bool { return k.crd.Spec.Scope == apiextensionsv1.NamespaceScoped }

// isRead reports whether all objects of the kind are in the snapshot.
func (g *graph) isRead(gk schema.GroupKind) bool {
	k := g.byGroup[gk]
	return k != nil && !g.unread[k.crd.Name]
}

// place returns the place of findings about an object. Responsible are the provider of its kind, and
// others.
func (o *object) place(others ...string) place {
	p := place{Kind: o.kind.Kind, Object: nameOf(o.GetNamespace(), o.GetName())}
	if o.kind.provider != "" {
		p.Providers = append([]string{o.kind.provider}, others...)
	}

	return p
}

// nameOf returns "namespace/name", or the name alone if the object has no namespace.
func nameOf(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }

// String returns the kind and name.
func (o *object) String() string { return o.kind.Kind + " " + nameOf(o.GetNamespace(), o.GetName()) }

// is reports whether the object is of one of core's kinds.
func (o *object) is(kind string) bool {
	return o.kind.GroupKind == schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: kind}
}

// each calls a function for all objects of one of core's kinds.
func (g *graph) each(kind string, visit func(*object)) {
	for _, o := range g.objects {
		if o.is(kind) {
			visit(o)
		}
	}
}

// owner returns the object that an owner reference names; nil if there is none.
func (g *graph) owner(ref metav1.OwnerReference) *object { return g.byUID[ref.UID] }

// clusterOf returns the Cluster that an object belongs to according to its owner references; nil if
// there is none.
func (g *graph) clusterOf(o *object) *object {
	found, _ := g.ancestor(o, func(o *object) bool { return o.is("Cluster") })
	return found
}

// ancestor returns an object that meets a condition: the object itself, or one that it is linked to by
// owner references. It is nil if there is none. In that case, certain reports whether all owners are
// known.
func (g *graph) ancestor(o *object, meets func(*object) bool) (found *object, certain bool) {
	certain = true
	seen := map[types.UID]bool{}

	for queue := []*object{o}; len(queue) > 0; queue = queue[1:] {
		if meets(queue[0]) {
			return queue[0], true
		}

		for _, ref := range queue[0].GetOwnerReferences() {
			owner := g.owner(ref)

			switch {
			case owner == nil:
				certain = certain && g.isRead(groupKind(ref.APIVersion, ref.Kind))
			case !seen[ref.UID]:
				seen[ref.UID] = true

				queue = append(queue, owner)
			}
		}
	}

	return nil, certain
}

func groupKind(apiVersion, kind string) schema.GroupKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
}
