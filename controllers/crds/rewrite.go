package crds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds/versions"
	"github.com/capstan-project/capstan/controllers/paging"
)

// migrationOwner is the field manager of the requests that rewrite objects. It never owns a field.
const migrationOwner = v1alpha2.FieldOwner + "-migration"

// pageSize is how many objects are in memory, and rewritten before the progress is reported.
const pageSize = 50

// rewriter rewrites the objects of one CRD.
type rewriter struct {
	objects metadata.Getter
	// subresources is the status if there is one: hardly any admission webhook handles it, so none
	// can reject the request.
	subresources []string
	// rewriteAll means that objects may be stored in an old version.
	rewriteAll bool
	// retired are the apiVersions that managedFields must not name any longer; successor replaces
	// them.
	retired   []string
	successor string
}

func (a *Applier) newRewriter(crd *apiextensionsv1.CustomResourceDefinition, t task) (*rewriter, error) {
	// Whatever version a request uses, the API server stores the object in the storage version.
	version := versions.Preferred(crd)
	if version == nil {
		return nil, errors.New("the CustomResourceDefinition serves no version")
	}

	r := &rewriter{
		objects:    a.Metadata.Resource(versions.Resource(crd, version.Name)),
		rewriteAll: len(t.from) > 0,
		successor:  schema.GroupVersion{Group: crd.Spec.Group, Version: t.successor}.String(),
	}
	for _, retired := range t.retired {
		r.retired = append(r.retired, schema.GroupVersion{Group: crd.Spec.Group, Version: retired}.String())
	}

	if version.Subresources != nil && version.Subresources.Status != nil {
		r.subresources = []string{"status"}
	}

	return r, nil
}

// rewritePage rewrites the next page of a CRD's objects, one after the other.
// Objects that were created since the list started are stored in the storage version anyway, so it
// does not matter if an expired list continues without them.
func (a *Applier) rewritePage(
	ctx context.Context,
	crd *apiextensionsv1.CustomResourceDefinition,
	t task,
	m *migration,
) error {
	r, err := a.newRewriter(crd, t)
	if err != nil {
		return err
	}

	list, err := paging.Page(ctx, metav1.ListOptions{Limit: pageSize, Continue: m.next}, r.objects.List)
	if err != nil {
		return fmt.Errorf("list the objects: %w", err)
	}

	for i := range list.Items {
		if err := r.rewrite(ctx, &list.Items[i]); err != nil {
			return err
		}
	}

	m.next = list.GetContinue()
	m.done += int64(len(list.Items))
	m.total = m.done + ptr.Deref(list.GetRemainingItemCount(), 0)

	if m.next == "" {
		m.finished = crd.ResourceVersion
	}

	return nil
}

// rewrite makes the API server store an object again. The API server does not write one that is
// already stored as it should be.
func (r *rewriter) rewrite(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := r.patch(ctx, object)
		if !apierrors.IsConflict(err) {
			return err
		}

		current, getErr := r.objects.Namespace(object.Namespace).Get(ctx, object.Name, metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}

		object = current

		return err
	})

	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		name := strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")

		return fmt.Errorf("rewrite %s: %w", name, err)
	}

	return nil
}

// patch replaces retired versions in managedFields. Any write makes the API server store the
// object in the storage version, so if there are none, an empty patch will do.
func (r *rewriter) patch(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	entries, changed := r.replaceRetired(object.ManagedFields)
	if !changed && !r.rewriteAll {
		return nil
	}

	objects := r.objects.Namespace(object.Namespace)
	options := metav1.PatchOptions{FieldManager: migrationOwner}

	if !changed {
		_, err := objects.Patch(ctx, object.Name, types.MergePatchType, []byte("{}"), options, r.subresources...)
		return err
	}

	return replaceManagedFields(ctx, objects, object, entries, options)
}

// replaceManagedFields replaces the managed fields of an object, unless it has changed since it was read.
func replaceManagedFields(
	ctx context.Context, objects metadata.ResourceInterface, object *metav1.PartialObjectMetadata,
	entries []metav1.ManagedFieldsEntry, options metav1.PatchOptions,
) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": object.ResourceVersion},
	})
	if err != nil {
		return err
	}

	_, err = objects.Patch(ctx, object.Name, types.JSONPatchType, patch, options)

	return err
}

// replaceRetired returns managedFields in which no entry names a retired version, because
// server-side apply fails if an entry names a version that does not exist. An entry keeps its
// fields, but is dropped if its manager has an entry for the successor, too.
func (r *rewriter) replaceRetired(
	entries []metav1.ManagedFieldsEntry,
) (replaced []metav1.ManagedFieldsEntry, changed bool) {
	for _, entry := range entries {
		if !slices.Contains(r.retired, entry.APIVersion) {
			replaced = append(replaced, entry)
			continue
		}

		changed = true

		if !r.hasSuccessor(entries, entry) {
			entry.APIVersion = r.successor
			replaced = append(replaced, entry)
		}
	}

	return replaced, changed
}

// hasSuccessor reports whether the manager of an entry has another one for the successor.
func (r *rewriter) hasSuccessor(entries []metav1.ManagedFieldsEntry, entry metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.APIVersion == r.successor &&
			e.Manager == entry.Manager &&
			e.Operation == entry.Operation &&
			e.Subresource == entry.Subresource
	})
}
