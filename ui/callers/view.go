package callers

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/ui"
	"github.com/capstan-project/capstan/ui/page"
)

// view is what a caller may see. Each request has its own.
type view struct {
	*ui.Cluster

	caller  *caller
	records *records
}

func (a *Access) newView(c *caller) *view {
	visible := &records{from: a.options.Facts.Releases, caller: c}

	return &view{
		Cluster: &ui.Cluster{
			Reader: &facts.Reader{Client: &reader{&sharedReader{a}, c}, Releases: visible},
			Cache:  &reader{a.options.Cache, c},
		},
		caller:  c,
		records: visible,
	}
}

// checkAny returns a *ui.RefusedError if the caller may list no provider.
func (v *view) checkAny(ctx context.Context) error {
	all, err := v.mayListAll(ctx)
	if err != nil || all {
		return err
	}

	found, err := v.Providers(ctx)
	if err != nil || len(found) > 0 {
		return err
	}

	return &ui.RefusedError{
		Code: http.StatusForbidden,
		Message: fmt.Sprintf("User %s may list no provider in this cluster. Ask an administrator for the permission to "+
			"list the resources of the group %s, for example by the role view.", v.caller.name, v1alpha2.GroupVersion.Group),
	}
}

// mayListAll reports whether the caller may list providers of all kinds in all namespaces.
func (v *view) mayListAll(ctx context.Context) (bool, error) {
	places := map[place]bool{}

	for _, t := range v1alpha2.ProviderTypes() {
		of, err := v.caller.resourceOf(v1alpha2.GroupVersion.WithKind(string(t)))
		if err != nil {
			return false, err
		}

		places[place{of.GroupResource, ""}] = false
	}

	err := v.caller.mayEach(ctx, "list", places)

	for _, allowed := range places {
		if !allowed {
			return false, err
		}
	}

	return true, err
}

// Viewer returns who sees the page, for the page itself.
func (v *view) Viewer(ctx context.Context) (page.Viewer, error) {
	all, err := v.mayListAll(ctx)
	return page.Viewer{Name: v.caller.name, Limited: !all}, err
}

// Detailed reads the facts about a provider that the caller may see, and how much is missing.
func (v *view) Detailed(ctx context.Context, p v1alpha2.Provider) (facts.Provider, error) {
	found, err := v.Cluster.Detailed(ctx, p)

	if hidden := v.records.hidden.Load(); hidden > 0 && found.Details != nil {
		found.Details.Unknown = append(found.Details.Unknown, fmt.Sprintf(
			"objects: %d of the release are not shown, nor are their images, because you may not get them", hidden))
	}

	return found, err
}

// History reads the revisions of a provider's release if the caller may list Secrets, where Helm has them.
func (v *view) History(ctx context.Context, p v1alpha2.Provider) ([]facts.Revision, error) {
	if p.GetSpec().KubeConfig == nil {
		secrets := corev1.Resource("secrets")
		namespace := plan.ReleaseKey(p).Namespace

		allowed, err := v.caller.may(ctx, "list", secrets, namespace)
		if err != nil {
			return nil, err
		}

		if !allowed {
			return nil, v.caller.forbidden("list", secrets, namespace)
		}
	}

	return v.Cluster.History(ctx, p)
}

// records are Helm's records, without the objects that the caller may not get.
type records struct {
	from   facts.Releases
	caller *caller
	hidden atomic.Int64 // objects in the records that were read
}

// Observe returns the history of a release, which has nothing that the status of the provider does not have.
func (r *records) Observe(ctx context.Context, name types.NamespacedName) (state.History, error) {
	return r.from.Observe(ctx, name)
}

// Read reads the record of a revision.
func (r *records) Read(
	ctx context.Context, name types.NamespacedName, revision state.Revision,
) (*release.Record, error) {
	id := fmt.Sprintf("%s %d %s", name, revision.Number, revision.Status)

	record, err := r.caller.records.get(ctx, id, func(ctx context.Context) (*release.Record, error) {
		return r.from.Read(ctx, name, revision)
	})
	if err != nil {
		return nil, err
	}

	visible := *record // which is shared
	visible.Objects, err = r.visible(ctx, record.Objects)
	visible.Hooks = nil

	return &visible, err
}

// visible returns the objects that the caller may get, and counts the others.
func (r *records) visible(
	ctx context.Context, objects []*unstructured.Unstructured,
) ([]*unstructured.Unstructured, error) {
	found := make([]place, len(objects))
	places := map[place]bool{}
	resources := map[schema.GroupVersionKind]resource{}

	for i, o := range objects {
		kind := o.GroupVersionKind()

		of, known := resources[kind]
		if !known {
			var err error
			if of, err = r.caller.resourceOf(kind); err != nil {
				return nil, err
			}

			resources[kind] = of
		}

		found[i] = place{of.GroupResource, o.GetNamespace()}
		places[found[i]] = false
	}

	if err := r.caller.mayEach(ctx, "get", places); err != nil {
		return nil, err
	}

	visible := make([]*unstructured.Unstructured, 0, len(objects))

	for i, o := range objects {
		if places[found[i]] {
			visible = append(visible, o)
		}
	}

	r.hidden.Add(int64(len(objects) - len(visible)))

	return visible, nil
}
