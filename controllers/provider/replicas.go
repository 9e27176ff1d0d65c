package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
)

// replicas are those of the newest revision's workloads, as far as they contradict the revision. Another program has
// set them, so they do not fail the revision.
type replicas struct {
	// running is set if a workload that the revision has paused has, or may have, pods.
	running bool
	// wrong describes the workloads with other replicas.
	wrong []string
	// kept describes the workloads that run other images than the revision has, because they are applied only once.
	kept []string
}

// findReplicas finds the workloads that run although the revision is paused, and those that were scaled to zero
// although it is not.
func (r *run) findReplicas(ctx context.Context) error {
	r.installed.replicas = replicas{}

	seen := map[object.Key]health.Result{}
	for _, o := range r.installed.health.Objects {
		seen[o.Object] = o.Result
	}

	for _, o := range r.installed.Record.Objects {
		if asks.IsAppliedOnce(o) {
			r.installed.replicas.kept = append(r.installed.replicas.kept, keptImages(o, seen[object.KeyOf(o)])...)
		}

		wanted, defined, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")

		found, checked := seen[object.KeyOf(o)]
		if !defined || !checked || found.Status == status.NotFoundStatus {
			continue
		}

		_, paused := o.GetAnnotations()[v1alpha2.PausedReplicasAnnotation]
		r.installed.replicas.running = r.installed.replicas.running || paused && (!found.Healthy() || found.Replicas > 0)

		if !found.Healthy() || !contradicts(found.Replicas, wanted, paused) {
			continue
		}

		// KEDA scales to zero, too. Autoscalers are looked for only now, because that costs requests.
		if !paused {
			scaled, err := r.target.Releases.IsScaled(ctx, r.installed.History.Release, object.KeyOf(o))
			if err != nil {
				return err
			} else if scaled {
				continue
			}
		}

		r.installed.replicas.wrong = append(r.installed.replicas.wrong, fmt.Sprintf(
			"%s: has spec.replicas %d instead of %d; scale it, and find out what has changed it",
			object.KeyOf(o), found.Replicas, wanted))
	}

	return nil
}

// keptImages describes which containers of an object of the revision run other images than it has.
func keptImages(o *unstructured.Unstructured, found health.Result) []string {
	var kept []string

	images := health.Images(o)

	for _, name := range slices.Sorted(maps.Keys(images)) {
		if runs, exists := found.Images[name]; exists && runs != images[name] {
			kept = append(kept, fmt.Sprintf("container %s of %s stays at the image %s instead of %s",
				name, object.KeyOf(o), runs, images[name]))
		}
	}

	return kept
}

// contradicts reports whether a workload runs although its revision has paused it, or is scaled to zero although not.
func contradicts(found, wanted int64, paused bool) bool {
	if paused {
		return found > 0
	}

	return wanted > 0 && found == 0
}

// keptMessage explains containers that a revision did not change, and how to change them; empty for none.
func (r replicas) keptMessage() string {
	if len(r.kept) == 0 {
		return ""
	}

	return fmt.Sprintf("%s, because %s is %s: change it yourself, or delete the object to have it created again",
		strings.Join(r.kept, "; "), v1alpha2.UpdatePolicyAnnotation, v1alpha2.UpdateOnce)
}
