package permissions

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
)

// row is a kind of request that the operator sends for a provider with the permissions of the
// provider's account.
type row struct {
	verbs []string
	// resources, names and scope describe the targets. Without names, all objects are targets.
	resources, names, scope string
	// purpose is why the requests are made.
	purpose string
	// targets returns what the requests are about.
	targets func(Installation) ([]target, error)
}

const (
	ownKinds         = "the kinds that the provider's CRDs define"
	releaseNamespace = "the namespace of the resource"
	theirNames       = "their names"
	objectScope      = "the objects' namespaces; the cluster for kinds without namespace"
	wholeCluster     = "the cluster"
)

// table has the requests that are made with an account in the provider's cluster.
var table = []row{
	{
		verbs: []string{"create"}, resources: "the kinds of the provider's objects", scope: objectScope,
		purpose: "create the provider's objects",
		targets: func(i Installation) ([]target, error) { return withoutNames(i.objectsOf(i.Objects)) },
	},
	{
		verbs: []string{"get", "patch", "delete"}, resources: "the kinds of the provider's objects",
		names: theirNames, scope: objectScope,
		purpose: "apply, watch, correct and remove them",
		targets: func(i Installation) ([]target, error) { return i.objectsOf(i.Objects) },
	},
	{
		verbs:     []string{"get", "list", "create", "update", "patch", "delete"},
		resources: "`secrets`", scope: releaseNamespace,
		purpose: "keep Helm's release records, which have a new name in each revision, and compare the CA of webhooks " +
			"with that of their Certificate",
		targets: func(i Installation) ([]target, error) {
			return []target{{namespace: i.Provider.GetNamespace(), resource: secretResource}}, nil
		},
	},
	{
		verbs: []string{"get"}, resources: "`customresourcedefinitions.apiextensions.k8s.io`",
		names: theirNames, scope: wholeCluster,
		purpose: "compare the provider's CRDs",
		targets: func(i Installation) ([]target, error) { return named(crdResource, i.crds()), nil },
	},
	{
		verbs: []string{"create", "patch"}, resources: "`customresourcedefinitions.apiextensions.k8s.io`",
		names: theirNames, scope: wholeCluster,
		purpose: "apply the provider's CRDs, unless `spec.crds` excludes them",
		targets: func(i Installation) ([]target, error) { return named(crdResource, i.managed()), nil },
	},
	{
		verbs: []string{"patch"}, resources: "`customresourcedefinitions/status.apiextensions.k8s.io`",
		names: theirNames, scope: wholeCluster,
		purpose: "remove a migrated version from the stored versions of these CRDs",
		targets: func(i Installation) ([]target, error) { return named(crdStatusResource, i.managed()), nil },
	},
	{
		verbs: []string{"list"}, resources: ownKinds, scope: wholeCluster,
		purpose: "try changes of CRDs on the objects, and find the objects that block a removal",
		targets: func(i Installation) ([]target, error) { return kinds("", i.crds()), nil },
	},
	{
		verbs: []string{"get", "patch"}, resources: ownKinds + ", and their `status`", scope: wholeCluster,
		purpose: "migrate the objects to a new storage version",
		targets: func(i Installation) ([]target, error) {
			return slices.Concat(kinds("", i.managed()), kinds("/status", i.managed())), nil
		},
	},
	{
		verbs:     []string{"list"},
		resources: "`horizontalpodautoscalers.autoscaling`, `scaledobjects.keda.sh` if it exists",
		scope:     "the namespaces of the provider's Deployments and StatefulSets",
		purpose:   "find out whether an autoscaler has set replicas that differ",
		targets:   Installation.autoscalers,
	},
	{
		verbs: []string{"get", "patch"}, resources: "`namespaces`", names: releaseNamespace, scope: wholeCluster,
		purpose: "label and annotate the namespace, if the provider's components have labels or annotations for it",
		targets: func(i Installation) ([]target, error) {
			changed, err := i.changesNamespace()
			if err != nil || !changed && !i.Remote {
				return nil, err
			}

			return named(namespaceResource, []string{i.Provider.GetNamespace()}), nil
		},
	},
	{
		verbs: []string{"create"}, resources: "`namespaces`", scope: wholeCluster,
		purpose: "create the namespace, in a remote cluster",
		targets: func(i Installation) ([]target, error) {
			if !i.Remote {
				return nil, nil
			}

			return []target{{resource: namespaceResource}}, nil
		},
	},
	{
		verbs: []string{"create"}, resources: "`namespaces`", scope: wholeCluster,
		purpose: "create other namespaces that objects name, if `spec.policies.missingNamespaces` asks for it",
		targets: func(i Installation) ([]target, error) {
			if !slices.ContainsFunc(i.Objects, i.createsNamespace) {
				return nil, nil
			}

			return []target{{resource: namespaceResource}}, nil
		},
	},
	{
		verbs: []string{"delete"}, resources: "`customresourcedefinitions.apiextensions.k8s.io`",
		names: theirNames, scope: wholeCluster,
		purpose: "delete the CRDs, if the annotation `" + v1alpha2.DeleteCRDsAnnotation + "` asks for it",
		targets: func(i Installation) ([]target, error) {
			if !v1alpha2.Asks(i.Provider, v1alpha2.DeleteCRDsAnnotation) {
				return nil, nil
			}

			return named(crdResource, i.managed()), nil
		},
	},
	{
		verbs: []string{"delete"}, resources: "`namespaces`", names: releaseNamespace, scope: wholeCluster,
		purpose: "delete the namespace, if the annotation `" + v1alpha2.DeleteNamespaceAnnotation + "` asks for it",
		targets: func(i Installation) ([]target, error) {
			if !v1alpha2.Asks(i.Provider, v1alpha2.DeleteNamespaceAnnotation) {
				return nil, nil
			}

			return named(namespaceResource, []string{i.Provider.GetNamespace()}), nil
		},
	},
}

// afterwards has the requests that are made with an account for kinds that exist only once the provider runs, so
// nothing checks them before it is installed.
var afterwards = []row{{
	verbs: []string{"list"}, resources: "the kinds of `spec.additionalManagedTypes`", scope: wholeCluster,
	purpose: "find the objects of additional types that block a removal",
	targets: func(i Installation) ([]target, error) { return kinds("", i.Managed), nil },
}}

// Needed returns the permissions that the installation takes in the provider's cluster, sorted. Besides
// them, the account needs all that the provider's Roles grant: the API server lets no account grant more
// than it has.
func (i Installation) Needed() ([]Permission, error) {
	return i.collect(table)
}

// Read returns the permissions to read what the resource names in the cluster of the resource, sorted.
func (i Installation) Read() ([]Permission, error) {
	return i.collect(reads)
}

// collect returns the permissions of the rows, sorted.
func (i Installation) collect(rows []row) ([]Permission, error) {
	var needed []Permission

	for _, row := range rows {
		targets, err := row.targets(i)
		if err != nil {
			return nil, err
		}

		for _, t := range targets {
			needed = append(needed, Permission{
				Namespace: t.namespace,
				Resource:  t.resource,
				Names:     t.names,
				Verbs:     row.verbs,
			})
		}
	}

	return merge(needed), nil
}

// MarkdownTable returns the table for the documentation.
func MarkdownTable() string {
	var out strings.Builder

	out.WriteString("| to | verbs | resources | names | in |\n|---|---|---|---|---|\n")

	for _, row := range slices.Concat(table, afterwards, reads) {
		names := row.names
		if names == "" {
			names = "all"
		}

		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n",
			row.purpose, strings.Join(row.verbs, ", "), row.resources, names, row.scope)
	}

	return out.String()
}

// withoutNames removes the names of targets: Kubernetes cannot limit some verbs by name.
func withoutNames(targets []target, err error) ([]target, error) {
	for i := range targets {
		targets[i].names = nil
	}

	return targets, err
}

// named returns the target with some names in the whole cluster; none without names.
func named(resource schema.GroupResource, names []string) []target {
	if len(names) == 0 {
		return nil
	}

	return []target{{resource: resource, names: names}}
}

// kinds returns the targets with all objects of the kinds that CRDs define, or a subresource of them.
func kinds(subresource string, crds []string) []target {
	targets := make([]target, 0, len(crds))

	for _, name := range crds {
		resource := schema.ParseGroupResource(name)
		resource.Resource += subresource
		targets = append(targets, target{resource: resource})
	}

	return targets
}

// autoscalers returns the autoscalers that may set the replicas of the provider's objects.
func (i Installation) autoscalers() ([]target, error) {
	scaled, err := i.objectsOf(slices.DeleteFunc(slices.Clone(i.Objects), func(o *unstructured.Unstructured) bool {
		kind := o.GroupVersionKind()

		return kind.Group != appsv1.GroupName || kind.Kind != "Deployment" && kind.Kind != "StatefulSet"
	}))
	if err != nil {
		return nil, err
	}

	var targets []target

	for _, kind := range apply.AutoscalerKinds {
		mapping, err := i.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("look up the kind %s: %w", kind.Kind, err)
		}

		for _, t := range scaled {
			targets = append(targets, target{namespace: t.namespace, resource: mapping.Resource.GroupResource()})
		}
	}

	return targets, nil
}
