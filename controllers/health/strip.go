package health

import (
	"crypto/rand"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/object"
)

// maxPart is how many bytes Strip leaves of each part of an object, maxText of each text, and maxContainers how many
// containers.
const maxPart, maxText, maxContainers = 16 << 10, 1 << 10, 16

// contentField is where Strip notes the digest of the whole object. It cannot be guessed, so no object comes with it.
var contentField = v1alpha2.Prefix + "/" + rand.Text()

// What is read of a watched object: its status, and these fields.
var (
	keptMetadata = []string{
		"namespace", "name", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	}
	keptLabels      = []string{v1alpha2.ClusterctlProviderLabel}
	keptAnnotations = []string{
		v1alpha2.HelmReleaseNameAnnotation, v1alpha2.HelmReleaseNamespaceAnnotation, v1alpha2.HealthyWhenAnnotation,
	}
	keptSpec = []string{
		"replicas", "paused", "suspend", "parallelism", "completions", "progressDeadlineSeconds", "updateStrategy", "type",
		"clusterIP", "selector",
	}
	keptContainer = []string{"name", "image"}
)

// Strip is a transformation for the cache of Options. It leaves of an object only what a Tracker reads, and not much of
// that: anyone may create objects with the label of a provider.
func Strip(o any) (any, error) {
	switch o := o.(type) {
	case *metav1.PartialObjectMetadata:
		o.ObjectMeta = metav1.ObjectMeta{
			Namespace:         o.Namespace,
			Name:              o.Name,
			UID:               o.UID,
			ResourceVersion:   o.ResourceVersion,
			Generation:        o.Generation,
			CreationTimestamp: o.CreationTimestamp,
			DeletionTimestamp: o.DeletionTimestamp,
			Labels:            some(o.Labels, keptLabels),
			Annotations:       some(o.Annotations, keptAnnotations),
		}
	case *unstructured.Unstructured:
		if _, stripped := o.Object[contentField]; !stripped {
			o.Object = strip(o)
		}
	}

	return o, nil
}

// some returns the values of some keys.
func some(all map[string]string, keys []string) map[string]string {
	kept := map[string]string{}

	for _, key := range keys {
		if value, ok := all[key]; ok {
			kept[key] = cut(value)
		}
	}

	return kept
}

func strip(o *unstructured.Unstructured) map[string]any {
	metadata := partOf(o.Object["metadata"], keptMetadata...)
	metadata["labels"] = fieldsOf(some(o.GetLabels(), keptLabels))
	metadata["annotations"] = fieldsOf(some(o.GetAnnotations(), keptAnnotations))

	// The conditions must not be lost to other fields.
	status, _ := o.Object["status"].(map[string]any)
	kept := partOf(status, slices.Sorted(maps.Keys(status))...)
	maps.Copy(kept, partOf(status, observedGeneration, "conditions"))

	return map[string]any{
		"apiVersion": o.GetAPIVersion(),
		"kind":       o.GetKind(),
		"metadata":   metadata,
		"spec":       stripSpec(o),
		"status":     kept,
		contentField: object.SnapshotOf(object.Key{}, o).Content,
	}
}

func stripSpec(o *unstructured.Unstructured) map[string]any {
	spec := partOf(o.Object["spec"], keptSpec...)
	pod := map[string]any{}

	for _, field := range []string{"initContainers", "containers"} {
		var containers []any

		for _, c := range bundle.NestedMaps(o.Object, "spec", "template", "spec", field) {
			if len(containers) < maxContainers {
				containers = append(containers, partOf(c, keptContainer...))
			}
		}

		if len(containers) > 0 {
			pod[field] = containers
		}
	}

	if len(pod) > 0 {
		spec["template"] = map[string]any{"spec": pod}
	}

	return spec
}

// partOf returns a copy of some fields of an object, as far as they are not too large.
func partOf(all any, fields ...string) map[string]any {
	kept := map[string]any{}
	from, _ := all.(map[string]any)
	left := maxPart

	for _, field := range fields {
		if value, ok := from[field]; ok && left > 0 {
			kept[field] = copyOf(value, &left)
		}
	}

	return kept
}

// copyOf returns a copy of a JSON value that ends after a number of bytes.
func copyOf(value any, left *int) any {
	const overhead = 32

	switch value := value.(type) {
	case string:
		text := cut(value)
		*left -= len(text)

		return text
	case map[string]any:
		kept := map[string]any{}

		for _, key := range slices.Sorted(maps.Keys(value)) {
			if *left -= len(key) + overhead; *left > 0 {
				kept[key] = copyOf(value[key], left)
			}
		}

		return kept
	case []any:
		kept := []any{}

		for _, item := range value {
			if *left -= overhead; *left > 0 {
				kept = append(kept, copyOf(item, left))
			}
		}

		return kept
	default:
		return value
	}
}

// cut returns a text that is not too long.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}

	return strings.ToValidUTF8(strings.Clone(text[:maxText]), "")
}

func fieldsOf(values map[string]string) map[string]any {
	fields := map[string]any{}
	for key, value := range values {
		fields[key] = value
	}

	return fields
}

// snapshotOf is object.SnapshotOf, of an object that may have been stripped.
func snapshotOf(key object.Key, o metav1.Object) object.Snapshot {
	whole, ok := o.(*unstructured.Unstructured)
	if !ok {
		return object.SnapshotOf(key, o)
	}

	content, stripped := whole.Object[contentField].(string)
	if !stripped {
		return object.SnapshotOf(key, o)
	}

	return object.Snapshot{Object: key, ResourceVersion: o.GetResourceVersion(), Content: content}
}
