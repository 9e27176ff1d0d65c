package object

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Snapshot identifies what an object in the cluster looked like at one time.
type Snapshot struct {
	Object Key
	// ResourceVersion is the API server's.
	ResourceVersion string
	// Content is a digest of the object without its status and bookkeeping. It is empty if only the
	// metadata was read.
	Content string
}

// SnapshotOf takes a snapshot of an unstructured object, or of an object's metadata alone.
func SnapshotOf(key Key, o metav1.Object) Snapshot {
	s := Snapshot{Object: key, ResourceVersion: o.GetResourceVersion()}
	if whole, ok := o.(*unstructured.Unstructured); ok {
		s.Content = contentDigest(whole)
	}

	return s
}

// Same reports whether two snapshots of an object differ at most in its status and bookkeeping. If
// one of them knows the metadata only, any change counts.
func (s Snapshot) Same(other Snapshot) bool {
	if s.Content == "" || other.Content == "" {
		return s.ResourceVersion == other.ResourceVersion
	}

	return s.Content == other.Content
}

// OlderThan reports whether the snapshot is known to have been taken before the other one.
func (s Snapshot) OlderThan(other Snapshot) bool {
	return IsOlder(s.ResourceVersion, other.ResourceVersion)
}

// IsOlder reports whether a resource version is older than another one of the same kind. It returns
// false if they cannot be compared.
func IsOlder(resourceVersion, than string) bool {
	order, err := resourceversion.CompareResourceVersion(resourceVersion, than)
	return err == nil && order < 0
}

// revisionAnnotation is the Deployment controller's own counter.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// contentDigest leaves the UID out: an object that was deleted and recreated as it was has not
// changed.
func contentDigest(o *unstructured.Unstructured) string {
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
		return "" // cannot happen to what was read as JSON; the resource version decides then
	}

	sum := sha256.Sum256(document)

	return hex.EncodeToString(sum[:])
}
