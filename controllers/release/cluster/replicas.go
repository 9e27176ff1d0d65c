package cluster

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/autoscaling"
)

// keepReplicas makes the target of an object keep the replicas that it has in the cluster, if an
// autoscaler sets them. An autoscaler that comes with the target counts already, and one that goes with
// the release's earlier objects does not.
func (c *Client) keepReplicas(o, live *unstructured.Unstructured, target Objects) error {
	if !autoscaling.MayHaveScaled(o, live) {
		return nil
	}

	scaled := slices.ContainsFunc(target, func(other *unstructured.Unstructured) bool {
		return autoscaling.Scales(other, object.KeyOf(o))
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
		unstructured.RemoveNestedField(o.Object, autoscaling.ReplicasPath...)
		return nil
	}

	return autoscaling.KeepReplicas(o, live)
}

// IsScaled reports whether an autoscaler in the cluster sets the replicas of an object.
func (c *Client) IsScaled(o object.Key) (bool, error) {
	return c.isScaled(o, func(*unstructured.Unstructured) bool { return true })
}

// isScaled reports whether an autoscaler in the cluster that counts sets the replicas of an object.
func (c *Client) isScaled(o object.Key, counts func(*unstructured.Unstructured) bool) (bool, error) {
	for _, kind := range autoscaling.Kinds {
		scaled, err := c.Any(kind, o.Namespace, func(scaler *unstructured.Unstructured) bool {
			return autoscaling.Scales(scaler, o) && counts(scaler)
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
