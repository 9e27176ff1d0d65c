package release

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Record is the content of a revision.
type Record struct {
	ChartName    string
	ChartVersion string
	AppVersion   string
	// Contract is the provider's Cluster API contract; empty if the chart declares none.
	Contract string
	// Provider is the label of the provider whose components the chart was built from; empty for a
	// chart of another origin.
	Provider string
	// PatchedCRDs lists the CRDs that were applied with patches; see Spec.PatchedCRDs.
	PatchedCRDs string
	// Digest identifies the revision, see storage.Digest; empty for what was only rendered.
	Digest string
	// Owner is the resource that the revision was created for; zero if the record does not name it.
	Owner state.Owner
	// Salt of the digests of the release; empty if the record has none. It must stay secret.
	Salt string
	// Description is Helm's log entry, such as "Upgrade complete" or "Rollback to 3".
	Description string
	// Values that the chart was rendered with, of variables among them. They can be secrets.
	Values map[string]any
	// Objects of the manifest, in its order, with their namespaces. They must not be changed.
	Objects []*unstructured.Unstructured
}

// Keys returns the keys of the record's objects, in its order.
func (r *Record) Keys() []object.Key {
	keys := make([]object.Key, 0, len(r.Objects))
	for _, o := range r.Objects {
		keys = append(keys, object.KeyOf(o))
	}

	return keys
}

// Paused reports whether the record has Deployments and all of them are scaled to zero by spec.paused.
func (r *Record) Paused() bool {
	paused := false

	for _, o := range r.Objects {
		if o.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apps", Kind: "Deployment"}) {
			continue
		}

		if _, paused = o.GetAnnotations()[v1alpha2.PausedReplicasAnnotation]; !paused {
			return false
		}
	}

	return paused
}

// Needed returns the keys of the objects that the revision of the record needs: all but the Jobs that have
// completed in it.
func (r *Record) Needed(revision state.Revision) []object.Key {
	return slices.DeleteFunc(r.Keys(), func(o object.Key) bool { return storage.IsFinished(revision, o) })
}

// Select returns the record's objects with the given keys.
func (r *Record) Select(keys []object.Key) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(r.Objects), func(o *unstructured.Unstructured) bool {
		return !slices.Contains(keys, object.KeyOf(o))
	})
}

// RecordName returns the Secret that holds a revision of a release, as namespace/name.
func RecordName(release types.NamespacedName, revision int) string {
	return release.Namespace + "/" + helm.RecordName(release.Name, revision)
}

// Read reads an observed revision. The error is a *storage.CorruptError if it cannot be decoded, and storage.ErrChanged
// if it does not exist any more.
func (e *Engine) Read(ctx context.Context, release types.NamespacedName, revision state.Revision) (*Record, error) {
	record, _, err := e.read(ctx, release, revision)
	return record, err
}

// keptRecords is how many newest records are in memory. An install or an upgrade looks at each several times. Those of
// real providers have some 300 KB.
const keptRecords = 16

// keptRecord is a record in the resource version of its Secret.
type keptRecord struct {
	version string
	record  *Record
}

// recall reads the newest revision of a release, from memory if its Secret has not changed since it was read.
func (e *Engine) recall(ctx context.Context, release types.NamespacedName, newest state.Revision) (*Record, error) {
	if kept, ok := e.records.Get(release); ok && kept.(keptRecord).version == newest.ResourceVersion {
		return kept.(keptRecord).record, nil
	}

	record, version, err := e.read(ctx, release, newest)
	if err == nil {
		e.records.Add(release, keptRecord{version, record})
	}

	return record, err
}

// read is Read with the resource version of the Secret.
func (e *Engine) read(
	ctx context.Context, release types.NamespacedName, revision state.Revision,
) (_ *Record, version string, err error) {
	name := helm.RecordName(release.Name, revision.Number)

	secret, err := e.connection.Secrets.Secrets(release.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", fmt.Errorf("revision %d of release %s does not exist: %w",
			revision.Number, release, storage.ErrChanged)
	}

	if err != nil {
		return nil, "", fmt.Errorf("read Secret %s/%s: %w", release.Namespace, name, err)
	}

	record, err := e.recordOf(secret, release, revision.Number)

	return record, secret.ResourceVersion, err
}

// keep keeps the record of the newest revision as it was written last. It need not be read then.
func (e *Engine) keep(release types.NamespacedName, secret *corev1.Secret, number int) {
	if record, err := e.recordOf(secret, release, number); err == nil {
		e.records.Add(release, keptRecord{secret.ResourceVersion, record})
	}
}

// recordOf decodes the Secret of a revision.
func (e *Engine) recordOf(secret *corev1.Secret, release types.NamespacedName, number int) (*Record, error) {
	rel, err := storage.Decode(secret, release.Name, number)
	if err != nil {
		return nil, &storage.CorruptError{Secret: release.Namespace + "/" + secret.Name, Reason: err.Error()}
	}

	objects, err := e.decode(rel, rel.Manifest)
	if err != nil {
		return nil, err
	}

	record := newRecord(rel, objects)
	record.Owner, record.Salt = storage.OwnerOf(rel), storage.SaltOf(rel)
	record.Digest, err = storage.Digest(rel)

	return record, err
}

func newRecord(rel *helm.Release, objects []*unstructured.Unstructured) *Record {
	record := &Record{
		Description: rel.Info.Description, Values: rel.Config, Objects: objects,
	}

	if rel.Chart != nil && rel.Chart.Metadata != nil {
		record.ChartName = rel.Chart.Metadata.Name
		record.ChartVersion = rel.Chart.Metadata.Version
		record.AppVersion = rel.Chart.Metadata.AppVersion
		record.PatchedCRDs = rel.Chart.Metadata.Annotations[storage.PatchedCRDsAnnotation]
		record.Contract = rel.Chart.Metadata.Annotations[chartgen.AnnotationContract]

		if rel.Chart.Metadata.Annotations[chartgen.AnnotationContentID] != "" {
			record.Provider = rel.Chart.Metadata.Name
		}
	}

	return record
}

// decode returns the objects of a manifest of a revision, with their namespaces.
func (e *Engine) decode(rel *helm.Release, content string) ([]*unstructured.Unstructured, error) {
	objects, err := manifest.Decode(content)
	if err != nil {
		return nil, fmt.Errorf("release %s/%s, revision %d: %w", rel.Namespace, rel.Name, rel.Version, err)
	}

	e.setNamespaces(rel, objects)

	return objects, nil
}

// setNamespaces sets the namespace of a revision's objects that have none, and removes that of objects that are in
// none.
func (e *Engine) setNamespaces(rel *helm.Release, objects []*unstructured.Unstructured) {
	for _, o := range objects {
		// The scope of a kind that does not exist yet, or any more, is unknown.
		mapping, err := e.connection.Mapping(o.GroupVersionKind())

		switch {
		case err != nil:
		case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
			o.SetNamespace("")
		case o.GetNamespace() == "":
			o.SetNamespace(rel.Namespace)
		}
	}
}
