package health

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/webhooks"
)

// seen is what the watches keep of an object. Anyone may create objects with the label of a provider, so this is
// little, and does not grow with the object.
type seen struct {
	metav1.TypeMeta
	// ObjectMeta has the name, the version, the provider's label and the marks of the release.
	metav1.ObjectMeta

	snapshot object.Snapshot
	// result is the health. It is not final if that depends on a status, and only the metadata was read.
	result Result
	final  bool
	// selector selects the pods of a workload, and refusal is why these cannot be created; empty if they can.
	selector labels.Selector
	refusal  string
}

const (
	// maxText is how many bytes are kept of a text, and maxList of the names and images of containers and of a selector.
	maxText = 1 << 10
	maxList = 16 << 10
)

var keptAnnotations = []string{
	v1alpha2.HelmReleaseNameAnnotation, v1alpha2.HelmReleaseNamespaceAnnotation, v1alpha2.DriftAnnotation,
	metav1.InitialEventsAnnotationKey, // of the bookmark that ends the present objects
}

// seenOf returns what is kept of an object.
func seenOf(key object.Key, o client.Object) *seen {
	s := &seen{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       o.GetNamespace(),
			Name:            o.GetName(),
			ResourceVersion: o.GetResourceVersion(),
			Labels:          some(o.GetLabels(), v1alpha2.ClusterctlProviderLabel),
			Annotations:     some(o.GetAnnotations(), keptAnnotations...),
		},
		snapshot: object.SnapshotOf(key, o),
		result:   Compute(o),
	}
	s.result.Message = cut(s.result.Message)

	whole, isWhole := o.(*unstructured.Unstructured)
	s.final = isWhole || kindsWithoutStatus[key.GroupKind()] || o.GetDeletionTimestamp() != nil

	if isWhole && workloadKinds[key.GroupKind()] {
		s.selector, s.refusal = podSelector(whole), replicaFailure(whole)
	}

	if len(fmt.Sprint(s.result.Images)) > maxList {
		s.result.Images = nil
	}

	return s
}

// isReadWhole reports whether the watch of a kind reads whole objects, not only their metadata.
func isReadWhole(kind schema.GroupKind) bool { return workloadKinds[kind] || webhooks.Kinds[kind] }

// DeepCopyObject makes it an object that can be watched. What is kept is never changed.
func (s *seen) DeepCopyObject() runtime.Object { return s }

// seenList is a page of objects.
type seenList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []*seen
}

// DeepCopyObject makes it a list.
func (l *seenList) DeepCopyObject() runtime.Object { return l }

// some returns the values of some keys.
func some(all map[string]string, keys ...string) map[string]string {
	kept := map[string]string{}

	for _, key := range keys {
		if value, ok := all[key]; ok {
			kept[key] = cut(value)
		}
	}

	return kept
}

// cut returns a text that is not too long.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}

	return strings.ToValidUTF8(strings.Clone(text[:maxText]), "")
}
