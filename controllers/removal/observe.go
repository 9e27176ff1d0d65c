package removal

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/foreign"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// maxSearch limits a search for objects that probably do not exist.
const maxSearch = 20 * time.Second

// Find finds out what is installed, and whether the namespace is being deleted.
func (r *Removal) Find(ctx context.Context) error {
	r.release = plan.ReleaseKey(r.Provider)

	if err := r.observeNamespace(ctx); err != nil {
		return err
	}

	r.known = r.Uninstalled || foreign.MayHaveInstalled(r.Provider)

	err := r.observeRecords(ctx)
	if err != nil && r.Target.Account != "" && apierrors.IsForbidden(err) {
		err = r.observeWithoutAccount(ctx, err)
	}

	if err == nil && !r.recorded {
		err = r.observeWithoutRecords(ctx)
	}

	r.Found = Found{
		Known:       err == nil,
		Installed:   r.recorded || len(r.leftovers) > 0,
		Release:     r.recorded || !r.Uninstalled,
		Foreign:     r.foreign,
		Terminating: r.terminating,
	}

	return err
}

func (r *Removal) observeNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{}
	err := r.Target.APIReader.Get(ctx, client.ObjectKey{Name: r.release.Namespace}, namespace)
	r.terminating = apierrors.IsNotFound(err) || !namespace.DeletionTimestamp.IsZero()

	// The user of a kubeconfig may lack this permission, which nothing else needs.
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}

	return err
}

// observeRecords reads the release from Helm's storage.
func (r *Removal) observeRecords(ctx context.Context) error {
	history, err := r.Target.Releases.Observe(ctx, r.release)
	if err != nil {
		return err
	}

	newest, exists := r.newest(history)
	if !exists {
		return nil
	}

	record, err := r.Target.Releases.Read(ctx, r.release, newest)

	corrupt := errors.As(err, new(*storage.CorruptError))
	if err != nil && !corrupt {
		return err
	}

	// Another program may have replaced the release since.
	if r.foreign = foreign.IsRelease(r.Provider, history, record); r.foreign {
		return nil
	}

	if !corrupt { // uninstall deals with an unreadable record
		if err := foreign.ConfirmNewest(ctx, r.Provider, r.Target.Releases, history, record); err != nil {
			return err
		}

		newest, _ = history.Newest()
	}

	if !newest.Confirmed() {
		return r.leave(newest, record)
	}

	r.recorded = true
	r.known = true
	r.confirmed = newest.Confirm()

	if !corrupt {
		r.own = record.Keys()
	}

	return nil
}

// leave leaves a release alone whose newest revision is not known to be the resource's. If the resource has installed
// something, a user must decide.
func (r *Removal) leave(newest state.Revision, record *release.Record) error {
	r.foreign = true
	r.Unconfirmed = newest.Number

	if !r.known || r.Uninstalled {
		return nil
	}

	return &BlockedError{Message: "the release is not uninstalled: " +
		foreign.Unconfirmed(r.Provider, r.release, newest, record).Error()}
}

// newest returns the newest revision of the resource's release, and whether there is one. A release of
// the same name that another program created, or that a resource in another cluster owns, is none.
func (r *Removal) newest(history state.History) (state.Revision, bool) {
	foreign.Confirm(r.Provider, r.Owner, history)

	r.foreign = history.Owner().Excludes(r.Owner) || r.Provider.GetStatus().Release == nil && history.Foreign()
	if r.foreign {
		return state.Revision{}, false
	}

	return history.Newest()
}

// observeWithoutAccount decides what to do if the account must not read Helm's storage. Nothing has to
// be removed if neither the status nor the storage has the release; whether the storage has it is read
// with the operator's own permissions, because the status may have been lost. In a namespace that is
// being deleted, the account has probably lost only its RoleBindings there, and what is left outside of
// the namespace can be removed without records.
func (r *Removal) observeWithoutAccount(ctx context.Context, forbidden error) error {
	if !r.known {
		history, err := release.ReadHistory(ctx, r.Target.Metadata, r.release)
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}

		newest, exists := r.newest(history)
		if exists && !newest.Confirmed() {
			return r.leave(newest, nil)
		}

		r.known = exists
	}

	if r.known && !r.terminating && !r.Uninstalled {
		return fmt.Errorf("release %s cannot be uninstalled: %w", r.release, forbidden)
	}

	return nil
}

// observeWithoutRecords finds the objects of a release without records, if there ever was a release.
func (r *Removal) observeWithoutRecords(ctx context.Context) error {
	switch {
	case r.Uninstalled, r.foreign:
		return nil
	case r.known:
		return r.findLeftovers(ctx)
	case !r.terminating, r.Target.Remote:
		return nil
	}

	// The operator may have stopped during the first installation, before it wrote a status, and the
	// records are gone with the namespace. Hardly ever is something found.
	ctx, cancel := context.WithTimeout(ctx, maxSearch)
	defer cancel()

	if err := r.findLeftovers(ctx); err != nil {
		ctrl.LoggerFrom(ctx).Info("Removing a provider that was probably never installed without a complete search",
			"release", r.release.Name, "problem", err.Error())
	}

	return nil
}

// findLeftovers finds the objects of a release without records by the marks that they carry. It reads
// with the permissions of the operator, which the account need not have, and deletes nothing.
func (r *Removal) findLeftovers(ctx context.Context) error {
	search := NewSearch(r.Provider, r.Target)
	if r.terminating {
		search.Except = r.release.Namespace
	}

	var err error

	r.leftovers, err = r.Target.Releases.FindLeftovers(ctx, r.release, search)
	if err != nil {
		return err
	}

	r.own = release.KeysOf(r.leftovers)

	return nil
}

// NewSearch returns how to search for the objects of a provider's release without its records.
func NewSearch(provider v1alpha2.Provider, target *clusters.Target) cluster.Search {
	search := cluster.Search{
		Selector: labels.SelectorFromSet(labels.Set{v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(provider)}),
		Reader:   target.Metadata,
	}

	if status := provider.GetStatus().Release; status != nil {
		for _, kind := range status.Kinds {
			search.Kinds = append(search.Kinds, schema.ParseGroupKind(kind))
		}
	}

	return search
}
