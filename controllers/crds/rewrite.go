package crds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// migrationOwner is the field manager of the requests that rewrite objects. It never comes to own a
// field.
const migrationOwner = v1alpha2.FieldOwner + "-migration"

// The load of a migration on the API server: metadata in pages, and a bounded number of writes.
const (
	pageSize        = 200
	writesPerSecond = 200
	rewriters       = 8
)

// page rewrites the next objects of a CRD, and reports whether they were the last.
func (a *Applier) page(
	ctx context.Context,
	crd *apiextensionsv1.CustomResourceDefinition,
	m *migration,
) (last bool, err error) {
	through, err := servedVersion(crd)
	if err != nil {
		return false, err
	}

	group := schema.GroupVersion{Group: crd.Spec.Group, Version: through.Name}
	objects := a.Writer.Resource(group.WithResource(crd.Spec.Names.Plural))

	list, err := objects.List(ctx, metav1.ListOptions{Limit: pageSize, Continue: m.Continue})
	if token := continueAnyway(err); token != "" {
		list, err = objects.List(ctx, metav1.ListOptions{Limit: pageSize, Continue: token})
	}

	if err != nil {
		return false, fmt.Errorf("list them: %w", err)
	}

	w := rewriter{
		objects: objects,
		from:    len(m.From) > 0,
		heir:    schema.GroupVersion{Group: crd.Spec.Group, Version: m.Heir}.String(),
	}
	for _, version := range m.Retired {
		w.retired = append(w.retired, schema.GroupVersion{Group: crd.Spec.Group, Version: version}.String())
	}

	if through.Subresources != nil && through.Subresources.Status != nil {
		w.subresources = []string{"status"}
	}

	var workers errgroup.Group
	workers.SetLimit(rewriters)

	for i := range list.Items {
		workers.Go(func() error { return a.rewrite(ctx, w, &list.Items[i]) })
	}

	if err := workers.Wait(); err != nil {
		return false, err
	}

	m.Done += int64(len(list.Items))

	m.Total = m.Done
	if rest := list.GetRemainingItemCount(); rest != nil {
		m.Total += *rest
	}

	m.Continue = list.GetContinue()

	return m.Continue == "", nil
}

// servedVersion is the version to go through: whichever it is, the API server stores the storage
// version.
func servedVersion(
	crd *apiextensionsv1.CustomResourceDefinition,
) (*apiextensionsv1.CustomResourceDefinitionVersion, error) {
	var found *apiextensionsv1.CustomResourceDefinitionVersion
	for i, v := range crd.Spec.Versions {
		if v.Served && (found == nil || v.Storage) {
			found = &crd.Spec.Versions[i]
		}
	}

	if found == nil {
		return nil, errors.New("no version of it is served")
	}

	return found, nil
}

// rewriter is how the objects of one CRD are rewritten.
type rewriter struct {
	objects metadata.Getter
	// subresources is the status where there is one: hardly any admission webhook looks at it, so
	// none stands in the way.
	subresources []string
	// from says that objects may be stored in an old version.
	from bool
	// retired are the apiVersions that managedFields must not name any more, and heir the one that
	// they name instead.
	retired []string
	heir    string
}

// rewrite makes the API server store an object anew. One that is stored as it should be already is
// not written: the API server finds nothing changed.
func (a *Applier) rewrite(ctx context.Context, w rewriter, o *metav1.PartialObjectMetadata) error {
	const attempts = 3

	for attempt := 1; ; attempt++ {
		err := a.patch(ctx, w, o)
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err) || attempt == attempts:
			return fmt.Errorf("rewrite %s: %w", objectName(o), err)
		}

		if o, err = w.in(o).Get(ctx, o.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read an object again: %w", err)
		}
	}
}

func (a *Applier) patch(ctx context.Context, w rewriter, o *metav1.PartialObjectMetadata) error {
	entries, changed := w.renamed(o.ManagedFields)
	if !changed && !w.from {
		return nil
	}

	if err := a.writes.Wait(ctx); err != nil {
		return err
	}

	options := metav1.PatchOptions{FieldManager: migrationOwner}
	if !changed {
		_, err := w.in(o).Patch(ctx, o.Name, types.MergePatchType, []byte("{}"), options, w.subresources...)
		return err
	}

	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": o.ResourceVersion},
	})
	if err != nil {
		return err
	}

	_, err = w.in(o).Patch(ctx, o.Name, types.JSONPatchType, patch, options)

	return err
}

func (w rewriter) in(o *metav1.PartialObjectMetadata) metadata.ResourceInterface {
	if o.Namespace == "" {
		return w.objects
	}

	return w.objects.Namespace(o.Namespace)
}

// renamed are managedFields in which no entry names a retired version: server-side apply fails on
// one that is gone. An entry keeps its fields, unless its manager has one for the new version too.
func (w rewriter) renamed(entries []metav1.ManagedFieldsEntry) (renamed []metav1.ManagedFieldsEntry, changed bool) {
	for _, entry := range entries {
		if slices.Contains(w.retired, entry.APIVersion) {
			changed = true

			if slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
				return e.APIVersion == w.heir && e.Manager == entry.Manager && e.Operation == entry.Operation &&
					e.Subresource == entry.Subresource
			}) {
				continue
			}

			entry.APIVersion = w.heir
		}

		renamed = append(renamed, entry)
	}

	return renamed, changed
}

// continueAnyway is the token that the API server offers along with the error that the list's own
// has expired. What was created since is stored in the new version, so nothing is missed.
func continueAnyway(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}

	return status.Status().Continue
}

// objectName names an object in a message.
func objectName(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}

	return o.GetNamespace() + "/" + o.GetName()
}
