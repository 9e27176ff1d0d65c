package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

const (
	// chunkSize keeps a ConfigMap well under the 1 MiB that the API server accepts.
	chunkSize = 900 << 10
	// chunkKey is the key of the data in each ConfigMap.
	chunkKey = "chart"

	annotationDigest = v1alpha2.Prefix + "/chart-digest"
	annotationChunks = v1alpha2.Prefix + "/chart-chunks"
	labelComponent   = "app.kubernetes.io/component"
	componentChart   = "capstan-chart"
)

// Cluster keeps charts as immutable ConfigMaps beside the provider's resource: an archive, cut into as many as it takes.
// The first is written last and says how many there are, so a chart is either whole or not there. Charts hold no
// credential (no variable's value is ever part of one), so ConfigMaps are the right place.
type Cluster struct {
	// Client must read from the API server itself, not from a cache.
	Client client.Client
}

var _ Store = &Cluster{}

// Get reads a chart and verifies its digest.
func (s *Cluster) Get(ctx context.Context, key Key) (*Stored, error) {
	head := &corev1.ConfigMap{}
	if err := s.read(ctx, key, 0, head); err != nil {
		return nil, err
	}
	chunks, err := strconv.Atoi(head.Annotations[annotationChunks])
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", client.ObjectKeyFromObject(head), ErrNotFound)
	}
	archive := bytes.Clone(head.BinaryData[chunkKey])
	for i := 1; i < chunks; i++ {
		chunk := &corev1.ConfigMap{}
		if err := s.read(ctx, key, i, chunk); err != nil {
			return nil, err
		}
		archive = append(archive, chunk.BinaryData[chunkKey]...)
	}
	if digest := chart.Digest(archive); digest != head.Annotations[annotationDigest] {
		return nil, fmt.Errorf("ConfigMap %s has another digest than it says: %w", client.ObjectKeyFromObject(head), ErrNotFound)
	}
	c, err := chart.Read(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", client.ObjectKeyFromObject(head), err)
	}
	return &Stored{Chart: c, Reference: reference(head), Digest: head.Annotations[annotationDigest], Size: len(archive)}, nil
}

// Put writes the chunks from the last to the first.
func (s *Cluster) Put(ctx context.Context, key Key, c *chart.Chart) (*Stored, error) {
	archive, err := c.Archive()
	if err != nil {
		return nil, err
	}
	digest := chart.Digest(archive)
	chunks := max(1, (len(archive)+chunkSize-1)/chunkSize)
	var head *corev1.ConfigMap
	for i := chunks - 1; i >= 0; i-- {
		head = key.configMap(i)
		head.BinaryData = map[string][]byte{chunkKey: archive[i*chunkSize : min(len(archive), (i+1)*chunkSize)]}
		if i == 0 {
			head.Annotations = map[string]string{annotationDigest: digest, annotationChunks: strconv.Itoa(chunks)}
		}
		if err := s.create(ctx, head); err != nil {
			return nil, fmt.Errorf("store chart %s in ConfigMap %s: %w", c.Filename(), client.ObjectKeyFromObject(head), err)
		}
	}
	return &Stored{Chart: c, Reference: reference(head), Digest: digest, Size: len(archive)}, nil
}

// Delete removes the ConfigMaps of a provider's charts.
func (s *Cluster) Delete(ctx context.Context, namespace, provider string) error {
	err := s.Client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(namespace),
		client.MatchingLabels{labelComponent: componentChart, v1alpha2.ProviderLabel: v1alpha2.LabelValue(provider)})
	if err != nil {
		return fmt.Errorf("delete stored charts of %s in namespace %s: %w", provider, namespace, err)
	}
	return nil
}

func (s *Cluster) read(ctx context.Context, key Key, chunk int, into *corev1.ConfigMap) error {
	name := client.ObjectKey{Namespace: key.Namespace, Name: key.objectName(chunk)}
	err := s.Client.Get(ctx, name, into)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("ConfigMap %s: %w", name, ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("read chart from ConfigMap %s: %w", name, err)
	}
	return nil
}

// create writes a ConfigMap. One of the same name with other data was damaged, or written by hand: it is replaced.
func (s *Cluster) create(ctx context.Context, cm *corev1.ConfigMap) error {
	fresh := cm.DeepCopy()
	err := s.Client.Create(ctx, cm, client.FieldOwner(v1alpha2.FieldOwner))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing := &corev1.ConfigMap{}
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(cm), existing); err != nil {
		return err
	}
	if bytes.Equal(existing.BinaryData[chunkKey], fresh.BinaryData[chunkKey]) && existing.Annotations[annotationDigest] == fresh.Annotations[annotationDigest] {
		return nil
	}
	if err := s.Client.Delete(ctx, existing, client.Preconditions{UID: &existing.UID}); err != nil {
		return err
	}
	return s.Client.Create(ctx, fresh, client.FieldOwner(v1alpha2.FieldOwner))
}

// configMap makes the object of a chunk, without its data.
func (k Key) configMap(chunk int) *corev1.ConfigMap {
	immutable := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.Namespace,
			Name:      k.objectName(chunk),
			Labels: map[string]string{
				"app.kubernetes.io/managed-by": v1alpha2.FieldOwner,
				labelComponent:                 componentChart,
				v1alpha2.ProviderLabel:         v1alpha2.LabelValue(k.Provider),
				v1alpha2.VersionLabel:          v1alpha2.LabelValue(k.Version),
				v1alpha2.ContentIDLabel:        v1alpha2.LabelValue(k.ContentID),
			},
		},
		Immutable: &immutable,
	}
}

// objectName is readable first and unique by its hash: "infrastructure-aws-2.11.1-3f9c2a1b04".
func (k Key) objectName(chunk int) string {
	sum := sha256.Sum256([]byte(k.ContentID))
	version := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(k.Version, "v"), "+", "-"))
	name := fmt.Sprintf("%s-%s-%s", k.Provider, version, hex.EncodeToString(sum[:5]))
	if chunk > 0 {
		name += fmt.Sprintf("-%d", chunk)
	}
	return name
}

func reference(head *corev1.ConfigMap) string {
	return fmt.Sprintf("configmap://%s/%s", head.Namespace, head.Name)
}
