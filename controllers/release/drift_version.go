package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Version is a state of an object in the cluster.
type Version struct {
	Object Object
	// ResourceVersion is the API server's.
	ResourceVersion string
	// Content is a digest of all but status and bookkeeping; empty if no more than metadata was
	// seen.
	Content string
}

// VersionOf tells an object's state from the whole object, or from its metadata alone.
func VersionOf(name Object, o metav1.Object) Version {
	v := Version{Object: name, ResourceVersion: o.GetResourceVersion()}
	if whole, ok := o.(*unstructured.Unstructured); ok {
		v.Content = content(whole)
	}

	return v
}

// Same reports whether two states of an object differ in status and bookkeeping at most. Where only
// metadata was seen of one of them, any change counts.
func (v Version) Same(other Version) bool {
	if v.Content == "" || other.Content == "" {
		return v.ResourceVersion == other.ResourceVersion
	}

	return v.Content == other.Content
}

// OlderThan reports whether another state of the object is known to have followed on this one.
func (v Version) OlderThan(other Version) bool {
	return Older(v.ResourceVersion, other.ResourceVersion)
}

// Older compares two versions of one kind of resource; false if they cannot be compared.
func Older(resourceVersion, than string) bool {
	order, err := resourceversion.CompareResourceVersion(resourceVersion, than)
	return err == nil && order < 0
}

// revisionAnnotation is the Deployment controller's own counter.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// content does not hold the UID: an object that was deleted and is there again as it was has not
// changed.
func content(o *unstructured.Unstructured) string {
	object := maps.Clone(o.Object)
	delete(object, "status")

	if metadata, ok := object["metadata"].(map[string]any); ok {
		kept := map[string]any{}
		for _, field := range []string{"labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"} {
			kept[field] = metadata[field]
		}

		if annotations, ok := kept["annotations"].(map[string]any); ok {
			annotations = maps.Clone(annotations)
			delete(annotations, revisionAnnotation)
			kept["annotations"] = annotations
		}

		object["metadata"] = kept
	}

	document, err := json.Marshal(object)
	if err != nil {
		return "" // what came from JSON can become JSON; if not, the resource version decides
	}

	sum := sha256.Sum256(document)

	return hex.EncodeToString(sum[:])
}
