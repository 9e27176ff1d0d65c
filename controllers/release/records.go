package release

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Record is what Helm has recorded of a revision.
type Record struct {
	ChartName, ChartVersion, AppVersion string
	// Description is Helm's log entry, e.g. "Upgrade complete" or "Rollback to 3".
	Description string
	// Objects of the manifest, in its order, with their namespaces. They are shared: whoever wants
	// to change one copies it.
	Objects []*unstructured.Unstructured
}

// Read decodes the record of an observed revision. The newest reading of each release is kept in
// memory until its Secret changes, so asking again costs nothing. The error is a *CorruptError if
// the record cannot be decoded, ErrChanged if it is gone.
func (e *Engine) Read(ctx context.Context, namespace, name string, revision Revision) (*Record, error) {
	if record := e.records.get(namespace, name, revision); record != nil {
		return record, nil
	}

	secretName := secretName(name, revision.Number)

	secret, err := e.secrets.Secrets(namespace).Get(ctx, secretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("revision %d of release %s/%s is gone: %w", revision.Number, namespace, name, ErrChanged)
	}

	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", namespace, secretName, err)
	}

	seen := Revision{UID: secret.UID, ResourceVersion: secret.ResourceVersion}

	rel, err := decodeRelease(secret.Data["release"], name, revision.Number)
	if err != nil {
		e.records.put(namespace, name, seen, nil)
		return nil, &CorruptError{Record: namespace + "/" + secretName, Reason: err.Error()}
	}

	record, err := e.record(rel)
	if err != nil {
		return nil, err
	}

	e.records.put(namespace, name, seen, record)

	return record, nil
}

func (e *Engine) record(rel *helmrelease.Release) (*Record, error) {
	objects, err := decodeManifest(rel.Manifest)
	if err != nil {
		return nil, fmt.Errorf("release %s/%s, revision %d: %w", rel.Namespace, rel.Name, rel.Version, err)
	}

	for _, o := range objects {
		if o.GetNamespace() != "" {
			continue
		}

		mapping, err := e.cluster.mapping(o.GroupVersionKind())
		if err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			o.SetNamespace(rel.Namespace)
		}
	}

	r := &Record{Description: rel.Info.Description, Objects: objects}
	if rel.Chart != nil && rel.Chart.Metadata != nil {
		m := rel.Chart.Metadata
		r.ChartName, r.ChartVersion, r.AppVersion = m.Name, m.Version, m.AppVersion
	}

	return r, nil
}

// records keeps the newest reading of each release.
type records struct {
	mu    sync.Mutex
	known map[types.NamespacedName]reading
}

// reading is one Secret as it was read; record is nil if it could not be decoded.
type reading struct {
	uid             types.UID
	resourceVersion string
	record          *Record
}

func (r *records) find(namespace, name string, revision Revision) (reading, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()

	known, ok := r.known[types.NamespacedName{Namespace: namespace, Name: name}]

	return known, ok && known.uid == revision.UID && known.resourceVersion == revision.ResourceVersion
}

func (r *records) get(namespace, name string, revision Revision) *Record {
	known, ok := r.find(namespace, name, revision)
	if !ok {
		return nil
	}

	return known.record
}

func (r *records) isUnreadable(namespace, name string, revision Revision) bool {
	known, ok := r.find(namespace, name, revision)
	return ok && known.record == nil
}

func (r *records) put(namespace, name string, revision Revision, record *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.known[types.NamespacedName{Namespace: namespace, Name: name}] = reading{
		revision.UID,
		revision.ResourceVersion,
		record,
	}
}

// touch keeps the reading of a Secret of which only the labels have changed.
func (r *records) touch(namespace, name string, uid types.UID, resourceVersion string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	key := types.NamespacedName{Namespace: namespace, Name: name}
	if known, ok := r.known[key]; ok && known.uid == uid {
		known.resourceVersion = resourceVersion
		r.known[key] = known
	}
}

func (r *records) forget(namespace, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	delete(r.known, types.NamespacedName{Namespace: namespace, Name: name})
}

// secretName is where Helm keeps a revision.
func secretName(name string, revision int) string {
	return fmt.Sprintf("%s.%s.v%d", storage.HelmStorageType, name, revision)
}

// decodeRelease reads what Helm keeps in a Secret: base64 of gzip of JSON. Helm's own decoder
// panics, or skips the revision in silence, when it meets a record that is not sound, so this one
// also sees to what actions take for granted.
func decodeRelease(data []byte, name string, revision int) (*helmrelease.Release, error) {
	compressed, err := base64.StdEncoding.AppendDecode(nil, data)
	if err != nil {
		return nil, errors.New("it is not base64")
	}

	zip, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, errors.New("it is not gzip")
	}

	text, err := io.ReadAll(zip)
	if err != nil {
		return nil, errors.New("it is cut short or damaged")
	}

	rel := &helmrelease.Release{}
	if err := json.Unmarshal(text, rel); err != nil {
		return nil, errors.New("it is not JSON of a release")
	}

	if rel.Name != name || rel.Version != revision || rel.Info == nil {
		return nil, errors.New("it is the record of another revision, or of none")
	}

	if rel.Chart == nil {
		rel.Chart = &chart.Chart{Metadata: &chart.Metadata{}}
	}

	return rel, nil
}
