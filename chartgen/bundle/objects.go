package bundle

import (
	"slices"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podTemplates maps each workload kind to the path of its pod template. The pod template of a Pod
// is the Pod itself.
var podTemplates = map[string][]string{
	"Deployment":  {"spec", "template"},
	"DaemonSet":   {"spec", "template"},
	"StatefulSet": {"spec", "template"},
	"ReplicaSet":  {"spec", "template"},
	"Job":         {"spec", "template"},
	"CronJob":     {"spec", "jobTemplate", "spec", "template"},
	"Pod":         {},
}

// RunsPods reports whether an object is a workload, by its kind.
func RunsPods(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	_, known := podTemplates[kind]

	return known
}

// PodTemplate returns the pod template of a workload: an object with the metadata and the spec of
// its pods. It returns nil if the object has none.
func PodTemplate(object map[string]any) map[string]any {
	if !RunsPods(object) {
		return nil
	}

	return NestedMap(object, podTemplates[object["kind"].(string)]...)
}

// Containers returns the init containers and the containers of a workload, in that order.
func Containers(object map[string]any) []map[string]any {
	spec := NestedMap(PodTemplate(object), "spec")

	return slices.Concat(NestedMaps(spec, "initContainers"), NestedMaps(spec, "containers"))
}

// Images returns the images of a workload's init containers and containers, in that order.
func Images(object map[string]any) []string {
	var images []string

	for _, container := range Containers(object) {
		if image, ok := container["image"].(string); ok && image != "" {
			images = append(images, image)
		}
	}

	return images
}

// NeedsCanonicalImages reports whether clusterctl parses the images of a workload, to replace parts of
// them. It refuses a provider with an image that is not canonical in such a workload.
func NeedsCanonicalImages(workload map[string]any) bool {
	return workload["kind"] == "Deployment" || workload["kind"] == "DaemonSet"
}

// IsCanonicalImage reports whether an image is a valid name with a registry and a path, such as
// docker.io/library/nginx, and not a short form of it.
func IsCanonicalImage(image string) bool {
	_, err := reference.ParseNamed(image)

	return err == nil
}

// serverFields are the fields of the metadata that the API server refuses, sets itself, or obeys although they are
// about an object in another cluster: it deletes an object whose owner does not exist.
var serverFields = []string{
	"deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "ownerReferences", "resourceVersion",
	"selfLink", "uid",
}

// RemoveServerFields removes the metadata that only the API server sets, which objects exported from a cluster contain.
func RemoveServerFields(o *unstructured.Unstructured) {
	for _, field := range serverFields {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
}

// IsHelmAnnotation reports whether an annotation is an instruction to Helm or a record of it.
func IsHelmAnnotation(key string) bool {
	return strings.HasPrefix(key, "helm.sh/") || strings.HasPrefix(key, "meta.helm.sh/")
}

// NestedMap returns a field of an object, or nil if it is not a map. The map is not copied.
func NestedMap(object map[string]any, fields ...string) map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	m, _ := value.(map[string]any)

	return m
}

// NestedString returns a field of an object, or "" if it is not a string.
func NestedString(object map[string]any, fields ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	s, _ := value.(string)

	return s
}

// NestedMaps returns the items of a list that are maps, and leaves out the others. The maps are not
// copied.
func NestedMaps(object map[string]any, fields ...string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	list, _ := value.([]any)

	var maps []map[string]any

	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			maps = append(maps, m)
		}
	}

	return maps
}
