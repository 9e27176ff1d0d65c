package apply

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

// AutoscalerKinds are the kinds that set the replicas of the object in their spec.scaleTargetRef.
var AutoscalerKinds = []schema.GroupVersionKind{
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"},
}

// replicasPath is the field that autoscalers set, and replicasPointer its JSON pointer.
var replicasPath = []string{"spec", "replicas"}

const replicasPointer = "/spec/replicas"

// keepReplicas makes the target of an object keep the replicas that it has in the cluster, if an
// autoscaler sets them. An autoscaler that comes with the target counts already, and one that goes with
// the release's earlier objects does not.
func (c *Client) keepReplicas(o, live *unstructured.Unstructured, target Objects) error {
	if !mayHaveScaled(o, live) {
		return nil
	}

	scaled := slices.ContainsFunc(target, func(other *unstructured.Unstructured) bool {
		return scales(other, object.KeyOf(o))
	})

	if !scaled {
		var err error

		scaled, err = c.isScaled(object.KeyOf(o), func(other *unstructured.Unstructured) bool { return !c.owns(other) })
		if err != nil {
			return err
		}
	}

	if !scaled {
		return nil
	}

	// They stay without being applied if the autoscaler has set them; otherwise they would become the API server's
	// default.
	if _, others := ownersOf(entriesOf(live, c.owns(live))); others.Has(fieldpath.MakePathOrDie("spec", "replicas")) {
		unstructured.RemoveNestedField(o.Object, replicasPath...)
		return nil
	}

	current, _ := replicas(live)

	return unstructured.SetNestedField(o.Object, current, replicasPath...)
}

// IsScaled reports whether an autoscaler in the cluster sets the replicas of an object.
func (c *Client) IsScaled(o object.Key) (bool, error) {
	return c.isScaled(o, func(*unstructured.Unstructured) bool { return true })
}

// isScaled reports whether an autoscaler in the cluster that counts sets the replicas of an object.
func (c *Client) isScaled(o object.Key, counts func(*unstructured.Unstructured) bool) (bool, error) {
	for _, kind := range AutoscalerKinds {
		scaled, err := c.Any(kind, o.Namespace, func(scaler *unstructured.Unstructured) bool {
			return scales(scaler, o) && counts(scaler)
		})
		if meta.IsNoMatchError(err) {
			continue
		}

		if err != nil {
			return false, fmt.Errorf("look for its %s: %w", kind.Kind, err)
		}

		if scaled {
			return true, nil
		}
	}

	return false, nil
}

// scales reports whether an object is an autoscaler, and the other one is what it scales.
func scales(autoscaler *unstructured.Unstructured, target object.Key) bool {
	kind := autoscaler.GroupVersionKind().GroupKind()
	isAutoscaler := slices.ContainsFunc(AutoscalerKinds, func(known schema.GroupVersionKind) bool {
		return known.GroupKind() == kind
	})

	return isAutoscaler && autoscaler.GetNamespace() == target.Namespace && refersTo(autoscaler, target)
}

func refersTo(autoscaler *unstructured.Unstructured, target object.Key) bool {
	ref, _, _ := unstructured.NestedMap(autoscaler.Object, "spec", "scaleTargetRef")

	kind, _ := ref["kind"].(string)
	if kind == "" {
		kind = "Deployment" // KEDA's default
	}

	apiVersion, _ := ref["apiVersion"].(string)

	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return false
	}

	sameGroup := apiVersion == "" || gv.Group == target.Group

	return sameGroup && kind == target.Kind && ref["name"] == target.Name
}

// mayHaveScaled reports whether an object has other replicas than its release defines, and these may be
// the choice of an autoscaler, if there is one. They are not if the release defines no replicas at all,
// which turns autoscalers off, or if they are left over from when the provider was paused.
func mayHaveScaled(desired, live *unstructured.Unstructured) bool {
	current, exists := replicas(live)
	if !exists {
		return false
	}

	wanted, exists := replicas(desired)
	if !exists {
		wanted = 1 // the API server's default
	}

	_, paused := live.GetAnnotations()[v1alpha2.PausedReplicasAnnotation]

	return wanted != current && wanted != 0 && !paused
}

// replicas returns the replicas of an object, if it has that field.
func replicas(o *unstructured.Unstructured) (replicas int64, exists bool) {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, replicasPath...)

	switch value := value.(type) {
	case int64:
		return value, true
	case float64:
		return int64(value), true
	default:
		return 0, false
	}
}
