package apply

import (
	"cmp"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/asks"
)

// managedByHelm is the value of v1alpha2.ManagedByLabel on the objects of a release.
const managedByHelm = "Helm"

// prepare changes an object of the release's manifest to what is applied. It adds the label and annotations that Helm
// adds to the objects of a release.
func (c *Client) prepare(o *unstructured.Unstructured) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}

	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}

	labels[v1alpha2.ManagedByLabel] = managedByHelm
	annotations[v1alpha2.HelmReleaseNameAnnotation] = c.release.Name
	annotations[v1alpha2.HelmReleaseNamespaceAnnotation] = c.release.Namespace

	o.SetLabels(labels)
	o.SetAnnotations(annotations)

	Normalize(o)
}

// RemoveHelmMetadata removes the label and annotations of Helm from the objects of the release.
func (c *Client) RemoveHelmMetadata() error {
	list, unread := c.existing(c.known, nil)

	return cmp.Or(c.each(list, func(o *unstructured.Unstructured) error { return c.unmark(o, nil) }), unread)
}

// orphan removes an object from the release, which may take it back.
func (c *Client) orphan(o *unstructured.Unstructured) error {
	return c.unmark(o, map[string]any{v1alpha2.OrphanedByAnnotation: c.release.String()})
}

// isOrphan reports whether the release was the last one that an object belonged to.
func (c *Client) isOrphan(live metav1.Object) bool {
	return ownerOf(live) == "" && metav1.GetControllerOf(live) == nil &&
		live.GetAnnotations()[v1alpha2.OrphanedByAnnotation] == c.release.String()
}

// unmark removes from an object the label and annotations of Helm, and sets annotations. It is not an error if the
// object does not exist.
func (c *Client) unmark(o *unstructured.Unstructured, annotations map[string]any) error {
	changed := map[string]any{v1alpha2.HelmReleaseNameAnnotation: nil, v1alpha2.HelmReleaseNamespaceAnnotation: nil}
	maps.Copy(changed, annotations)

	_, err := c.patch(c.connection.client, o, types.MergePatchType, map[string]any{"metadata": map[string]any{
		"labels":      map[string]any{v1alpha2.ManagedByLabel: nil},
		"annotations": changed,
	}})

	return client.IgnoreNotFound(err)
}

// ownerOf returns the release that an object belongs to, namespace/name; empty if it belongs to
// none.
func ownerOf(o metav1.Object) string {
	annotations := o.GetAnnotations()
	if annotations[v1alpha2.HelmReleaseNameAnnotation] == "" {
		return ""
	}

	return annotations[v1alpha2.HelmReleaseNamespaceAnnotation] + "/" + annotations[v1alpha2.HelmReleaseNameAnnotation]
}

func (c *Client) owns(o metav1.Object) bool { return ownerOf(o) == c.release.String() }

// adoptionError is why an object must not be adopted.
type adoptionError string

func (e adoptionError) Error() string { return "it " + string(e) }

// getOwn returns an object of the cluster, or nil if it does not exist. It fails if the object does not belong to
// the release and must not be adopted.
func (c *Client) getOwn(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := c.get(o)
	if err != nil || live == nil {
		return nil, err
	}

	if c.owns(live) || c.isOrphan(live) {
		return live, nil
	}

	problem := asks.AdoptionProblem(o, live, ownerOf(live))
	if problem != "" {
		return nil, adoptionError(problem)
	}

	return live, nil
}

// isKept reports whether an annotation asks to keep an object when its release is removed.
func isKept(o metav1.Object) bool {
	return strings.EqualFold(o.GetAnnotations()[helm.ResourcePolicyAnnotation], helm.KeepPolicy)
}

// isProtected reports whether objects of a kind are never deleted, because objects of users would be deleted with them.
// The API group does not matter: what other groups call a namespace is likely to contain something, too.
func isProtected(kind string) bool { return kind == "CustomResourceDefinition" || kind == "Namespace" }

// obstacle returns why an object of the cluster cannot be changed: it belongs to another release,
// or is being deleted. It is empty if nothing prevents the change.
func (c *Client) obstacle(live metav1.Object) string {
	if owner := ownerOf(live); owner != "" && !c.owns(live) {
		return "it belongs to release " + owner
	}

	if live.GetDeletionTimestamp() != nil {
		return deletionMessage(live)
	}

	return ""
}

// deletionMessage describes an object that is being deleted, but has finalizers.
func deletionMessage(o metav1.Object) string {
	return "it is being deleted, but its finalizers hold it: " + strings.Join(o.GetFinalizers(), ", ")
}
