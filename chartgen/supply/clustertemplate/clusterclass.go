package clustertemplate

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // most providers still use it
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen/supply/source"
)

var (
	clusterKind = clusterv1.GroupVersion.WithKind("Cluster").GroupKind()
	classKind   = clusterv1.GroupVersion.WithKind("ClusterClass").GroupKind()
)

// missingClasses returns the ClusterClasses that Clusters among the objects use and that are not
// among the objects, each once. clusterctl differs: it also adds classes that are among the objects,
// and repeats them.
func missingClasses(objects []unstructured.Unstructured) ([]types.NamespacedName, error) {
	var present, classes []types.NamespacedName

	for _, o := range objects {
		switch o.GroupVersionKind().GroupKind() {
		case classKind:
			present = append(present, client.ObjectKeyFromObject(&o))
		case clusterKind:
			class, err := classOf(&o)
			if err != nil {
				return nil, err
			}

			if class != nil && !slices.Contains(classes, *class) {
				classes = append(classes, *class)
			}
		}
	}

	return slices.DeleteFunc(classes, func(c types.NamespacedName) bool { return slices.Contains(present, c) }), nil
}

// classOf returns the class of a Cluster; nil if it has no topology, or an API version without one.
func classOf(o *unstructured.Unstructured) (*types.NamespacedName, error) {
	var class types.NamespacedName

	switch o.GroupVersionKind().GroupVersion() {
	case clusterv1.GroupVersion:
		cluster := &clusterv1.Cluster{}
		if err := decode(o, cluster); err != nil || !cluster.Spec.Topology.IsDefined() {
			return nil, err
		}

		class = cluster.GetClassKey()
	case clusterv1beta1.GroupVersion:
		cluster := &clusterv1beta1.Cluster{}
		if err := decode(o, cluster); err != nil || cluster.Spec.Topology == nil {
			return nil, err
		}

		class = cluster.GetClassKey()
	default:
		return nil, nil
	}

	if class.Name == "" {
		return nil, fmt.Errorf("the topology of Cluster %s names no ClusterClass; give it one", o.GetName())
	}

	return &class, nil
}

// decode converts a Cluster to its Go type. The error leaves out that of the converter, which names
// Go types and may quote values.
func decode(o *unstructured.Unstructured, into any) error {
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into) != nil {
		return fmt.Errorf(
			"the Cluster %s does not fit %s; compare its fields with that API, and check the variables' values",
			o.GetName(),
			o.GetAPIVersion(),
		)
	}

	return nil
}

// classes returns the templates of those ClusterClasses that the management cluster does not have.
// Classes that are not in the set either are an error, or, if there is no management cluster to ask,
// are returned as missing.
func (s *Set) classes(
	ctx context.Context,
	keys []types.NamespacedName,
	variables config.VariablesClient,
	management client.Client,
) (templates []repository.Template, missing []types.NamespacedName, err error) {
	for _, key := range keys {
		found, err := objectExists(ctx, management, classKind, key)
		if err != nil {
			return nil, nil, err
		}

		if found {
			continue
		}

		file, found := s.file(classPrefix + key.Name + suffix)
		if !found && management == nil {
			missing = append(missing, key)
			continue
		}

		if !found {
			return nil, nil, &source.NotFoundError{
				Message: fmt.Sprintf(
					"ClusterClass %s is neither in the management cluster nor, as %s, in %s; apply the class first",
					key,
					classPrefix+key.Name+suffix,
					s,
				),
			}
		}

		template, err := s.process(file, key.Namespace, variables)
		if err != nil {
			return nil, nil, err
		}

		if err := refuseExisting(ctx, management, key, template.Objs()); err != nil {
			return nil, nil, err
		}

		templates = append(templates, template)
	}

	return templates, missing, nil
}

// refuseExisting returns an error if one of a new class's objects exists in the management cluster:
// the object belongs to something else, which applying the class would change.
func refuseExisting(
	ctx context.Context,
	management client.Client,
	class types.NamespacedName,
	objects []unstructured.Unstructured,
) error {
	for _, o := range objects {
		found, err := objectExists(ctx, management, o.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(&o))
		if err != nil {
			return err
		}

		if found {
			return fmt.Errorf(
				"%s %s is in the management cluster already, but its ClusterClass %s is not; "+
					"delete the object, or apply the class yourself",
				o.GetKind(),
				client.ObjectKeyFromObject(&o),
				class,
			)
		}
	}

	return nil
}

// objectExists reports whether the management cluster has an object. It has none of a kind that it does
// not know.
func objectExists(
	ctx context.Context,
	management client.Client,
	kind schema.GroupKind,
	key types.NamespacedName,
) (bool, error) {
	if management == nil {
		return false, nil
	}

	mapping, err := management.RESTMapper().RESTMapping(kind)
	if err == nil {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(mapping.GroupVersionKind)
		err = management.Get(ctx, key, object)
	}

	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}

	if err != nil {
		return false, fmt.Errorf("look for %s %s in the management cluster: %w", kind.Kind, key, err)
	}

	return true, nil
}
