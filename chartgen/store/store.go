// Package store keeps the charts of providers, so that a chart is built only once, and an installed provider no longer
// needs its source.
package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// ErrNotFound reports that a store does not have a chart, or that the stored chart is damaged. To fetch it and to call
// Put resolves both.
var ErrNotFound = errors.New("chart not found in the store")

const (
	// archiveKey is the key of a chart's archive in its ConfigMap. The other keys are namespaces, which have no dots.
	archiveKey = "chart.tgz"
	// maxArchive is the maximum size of an archive, and maxOrigins how many namespaces can have fetched the same chart.
	// Together they fit into the 1 MiB that the API server accepts as the data of a ConfigMap.
	maxArchive = 896 << 10
	maxOrigins = 1000

	labelComponent = "app.kubernetes.io/component"
	componentChart = "capstan-chart"

	// pageSize is how many ConfigMaps are listed at a time, without their data.
	pageSize = 100

	scheme = "configmap://"
)

// Store keeps each chart in a ConfigMap of the operator's namespace, which is named by the chart's digest. What is
// there is trusted: only the operator may write to its namespace.
//
// A ConfigMap is sufficient, since a chart contains no credentials: the values of variables are never part of it.
type Store struct {
	// Client must read from the API server, not from a cache.
	Client client.Client
	// Namespace of the operator. The store is empty if a command does not know it.
	Namespace string
}

// Open returns the store that a reference to a chart names, see Reference.
func Open(c client.Client, reference string) *Store {
	namespace, _, _ := strings.Cut(strings.TrimPrefix(reference, scheme), "/")

	return &Store{Client: c, Namespace: namespace}
}

// Stored is a chart in a store.
type Stored struct {
	Chart *chart.Chart
	// Digest of the archive, "sha256:…".
	Digest string
	// Size of the archive in bytes.
	Size int

	// archive is the packed chart until it is stored; nil then, or if it was read from a store.
	archive []byte
	// origins are digests of where namespaces have fetched the chart from.
	origins map[string]string
}

// New returns a chart as it can be stored. The error is a *bundle.InvalidError if the chart is too large.
func New(c *chart.Chart) (*Stored, error) {
	archive, err := c.Archive()
	if err != nil {
		return nil, err
	}

	if err := CheckSize(c, len(archive)); err != nil {
		return nil, err
	}

	return &Stored{Chart: c, Digest: chart.Digest(archive), Size: len(archive), archive: archive}, nil
}

// pack returns the archive of the chart.
func (s *Stored) pack() ([]byte, error) {
	if s.archive != nil {
		return s.archive, nil
	}

	return s.Chart.Archive()
}

// CheckSize returns a *bundle.InvalidError if a chart, whose archive has the given size, is too large to be stored.
func CheckSize(c *chart.Chart, archive int) error {
	if archive <= maxArchive {
		return nil
	}

	return &bundle.InvalidError{File: c.Filename(), Reason: fmt.Sprintf(
		"the chart of %s %s has %d KiB, and a ConfigMap has room for %d KiB; publish less, for example fewer cluster "+
			"templates, or CRDs without descriptions",
		c.Metadata.Name, c.Metadata.AppVersion, (archive+1<<10-1)>>10, maxArchive>>10)}
}

// IsFrom reports whether a namespace has fetched the chart from an origin.
func (s *Stored) IsFrom(namespace, origin string) bool {
	stored, listed := s.origins[namespace]

	return listed && stored == digestOf(origin)
}

// IsOf reports whether a namespace has fetched the chart.
func (s *Stored) IsOf(namespace string) bool {
	_, listed := s.origins[namespace]

	return listed
}

// digestOf returns the digest of an origin: those of users can be long.
func digestOf(origin string) string {
	sum := sha256.Sum256([]byte(origin))

	return hex.EncodeToString(sum[:])
}

// Reference returns the place of a chart, for status and messages: configmap://<namespace>/<name>.
func (s *Store) Reference(digest string) string {
	return scheme + s.Namespace + "/" + nameOf(digest)
}

// nameOf returns the name of the ConfigMap of a chart.
func nameOf(digest string) string {
	return componentChart + "-" + strings.TrimPrefix(digest, "sha256:")
}

// Get reads the chart with a digest. It returns ErrNotFound if the chart must be fetched.
func (s *Store) Get(ctx context.Context, digest string) (*Stored, error) {
	key := client.ObjectKey{Namespace: s.Namespace, Name: nameOf(digest)}
	if s.Namespace == "" {
		return nil, fmt.Errorf("chart %s: %w", digest, ErrNotFound)
	}

	cm := &corev1.ConfigMap{}

	err := s.Client.Get(ctx, key, cm)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("ConfigMap %s: %w", key, ErrNotFound)
	}

	if err != nil {
		return nil, fmt.Errorf("read chart from ConfigMap %s: %w", key, err)
	}

	archive := cm.BinaryData[archiveKey]
	if chart.Digest(archive) != digest {
		return nil, fmt.Errorf("ConfigMap %s holds a damaged chart: %w", key, ErrNotFound)
	}

	c, err := chart.Read(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w: %w", key, err, ErrNotFound)
	}

	return &Stored{Chart: c, Digest: digest, Size: len(archive), origins: cm.Data}, nil
}

// Put stores a chart that a namespace has fetched from an origin. If the store has the chart already, Put only repairs
// damage. Set exists if the chart probably exists, so that it is read first.
func (s *Store) Put(ctx context.Context, stored *Stored, namespace, origin string, exists bool) error {
	key := client.ObjectKey{Namespace: s.Namespace, Name: nameOf(stored.Digest)}
	if err := s.put(ctx, key, stored, map[string]string{namespace: digestOf(origin)}, exists); err != nil {
		return fmt.Errorf("store chart %s in ConfigMap %s: %w", stored.Chart.Filename(), key, err)
	}

	stored.archive = nil

	return nil
}

// put stores a chart in the ConfigMap of its digest, with an origin in addition to those that are there.
func (s *Store) put(
	ctx context.Context, key client.ObjectKey, stored *Stored, origin map[string]string, exists bool,
) error {
	if !exists {
		err := s.create(ctx, key, stored, origin)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
	}

	err := s.add(ctx, key, stored, origin)
	if apierrors.IsNotFound(err) {
		return s.create(ctx, key, stored, origin)
	}

	return err
}

// create stores a chart in a new ConfigMap.
func (s *Store) create(ctx context.Context, key client.ObjectKey, stored *Stored, origin map[string]string) error {
	archive, err := stored.pack()
	if err != nil {
		return err
	}

	metadata := &stored.Chart.Metadata

	return s.Client.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace,
			Name:      key.Name,
			Labels: map[string]string{
				v1alpha2.ManagedByLabel: v1alpha2.FieldOwner,
				labelComponent:          componentChart,
				v1alpha2.ProviderLabel:  v1alpha2.LabelValue(metadata.Name),
				v1alpha2.VersionLabel:   v1alpha2.LabelValue(metadata.AppVersion),
			},
		},
		Data:       origin,
		BinaryData: map[string][]byte{archiveKey: archive},
	}, client.FieldOwner(v1alpha2.FieldOwner))
}

// add adds an origin to the ConfigMap of a chart that is stored already, and repairs the chart.
func (s *Store) add(ctx context.Context, key client.ObjectKey, stored *Stored, origin map[string]string) error {
	cm := &corev1.ConfigMap{}
	if err := s.Client.Get(ctx, key, cm); err != nil {
		return err
	}

	origins := map[string]string{}
	maps.Copy(origins, cm.Data)
	maps.Copy(origins, origin)

	if len(origins) > maxOrigins {
		origins = origin // the others fetch the chart again
	}

	hasChart := chart.Digest(cm.BinaryData[archiveKey]) == stored.Digest
	if hasChart && maps.Equal(origins, cm.Data) {
		return nil
	}

	if !hasChart {
		archive, err := stored.pack()
		if err != nil {
			return err
		}

		cm.BinaryData = map[string][]byte{archiveKey: archive}
	}

	cm.Data = origins

	return s.Client.Update(ctx, cm, client.FieldOwner(v1alpha2.FieldOwner))
}

// Collect deletes the charts whose digests are not used. used is asked once it is known which charts there are.
func (s *Store) Collect(ctx context.Context, used func() (sets.Set[string], error)) error {
	stored, err := s.list(ctx)
	if err != nil {
		return err
	}

	keep, err := used()
	if err != nil {
		return err
	}

	names := sets.New[string]()
	for digest := range keep {
		names.Insert(nameOf(digest))
	}

	for i := range stored {
		name := stored[i].Name
		if names.Has(name) {
			continue
		}

		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}

		err := s.Client.Delete(ctx, cm, client.Preconditions{UID: &stored[i].UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ConfigMap %s/%s with a chart that is no longer used: %w", s.Namespace, name, err)
		}
	}

	return nil
}

// list lists the ConfigMaps of charts without their data.
func (s *Store) list(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	var all []metav1.PartialObjectMetadata

	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))

	for {
		err := s.Client.List(ctx, page, client.InNamespace(s.Namespace),
			client.MatchingLabels{labelComponent: componentChart}, client.Limit(pageSize), client.Continue(page.Continue))
		if err != nil {
			return nil, fmt.Errorf("list stored charts in namespace %s: %w", s.Namespace, err)
		}

		all = append(all, page.Items...)

		if page.Continue == "" {
			return all, nil
		}
	}
}
