package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const (
	// chunkSize is the size of a chunk in bytes, well below the 1 MiB that the API server accepts for
	// an object.
	chunkSize = 900 << 10
	// maxChunks is the maximum number of chunks that are read, more than the largest chart has that a
	// registry is asked for.
	maxChunks = 20
	// chunkKey is the key of the chunk in its ConfigMap.
	chunkKey = "chart"
)

// Labels and annotations of a chart's ConfigMaps. The annotations are on the first one only.
const (
	labelComponent = "app.kubernetes.io/component"
	componentChart = "capstan-chart"

	annotationDigest = v1alpha2.Prefix + "/chart-digest"
	annotationChunks = v1alpha2.Prefix + "/chart-chunks"
	// annotationPrebuilt is "true" for a chart that was fetched as a chart.
	annotationPrebuilt = v1alpha2.Prefix + "/chart-prebuilt"
)

// objectName returns the name of the ConfigMap with the first chunk, which is unique by a hash:
// "infrastructure-aws-2.11.1-3f9c2a1b04".
func (k Key) objectName() string {
	sum := sha256.Sum256([]byte(k.ContentID + " " + k.Origin))
	version := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(k.Version, "v"), "+", "-"))

	return fmt.Sprintf("%s-%s-%s", k.Provider, version, hex.EncodeToString(sum[:5]))
}

// configMap returns the ConfigMap of a chunk, counted from 0.
func (k Key) configMap(chunk int, data []byte) *corev1.ConfigMap {
	immutable := true

	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.Namespace,
			Name:      chunkName(k.objectName(), chunk),
			Labels: map[string]string{
				v1alpha2.ManagedByLabel: v1alpha2.FieldOwner,
				labelComponent:          componentChart,
				v1alpha2.ProviderLabel:  v1alpha2.LabelValue(k.Provider),
				v1alpha2.VersionLabel:   v1alpha2.LabelValue(k.Version),
			},
		},
		Immutable:  &immutable,
		BinaryData: map[string][]byte{chunkKey: data},
	}
}

// chunkName returns the name of the ConfigMap with a chunk, counted from 0.
func chunkName(head string, chunk int) string {
	if chunk == 0 {
		return head
	}

	return fmt.Sprintf("%s-%d", head, chunk)
}

// reference returns the place of a chart by the ConfigMap with its first chunk.
func reference(head *corev1.ConfigMap) string {
	return fmt.Sprintf("configmap://%s/%s", head.Namespace, head.Name)
}

// listHeads lists the ConfigMaps with the first chunks of a provider's charts, without their data.
func (s *Cluster) listHeads(
	ctx context.Context,
	namespace, provider string,
	labels map[string]string,
) ([]metav1.PartialObjectMetadata, error) {
	all, err := s.listChunks(ctx, namespace, provider, labels)

	return slices.DeleteFunc(all, func(o metav1.PartialObjectMetadata) bool { return !isHead(&o) }), err
}

// listChunks lists the ConfigMaps of a provider's charts that have the labels, without their data.
func (s *Cluster) listChunks(
	ctx context.Context,
	namespace, provider string,
	labels map[string]string,
) ([]metav1.PartialObjectMetadata, error) {
	selector := client.MatchingLabels{
		labelComponent:         componentChart,
		v1alpha2.ProviderLabel: v1alpha2.LabelValue(provider),
	}
	maps.Copy(selector, labels)

	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))

	if err := s.Client.List(ctx, list, client.InNamespace(namespace), selector); err != nil {
		return nil, fmt.Errorf("list stored charts of %s in namespace %s: %w", provider, namespace, err)
	}

	return list.Items, nil
}

// isHead reports whether a ConfigMap has the first chunk of a chart.
func isHead(o *metav1.PartialObjectMetadata) bool { return o.Annotations[annotationChunks] != "" }

// readChunk reads a chunk of the chart whose first chunk has the name.
func (s *Cluster) readChunk(ctx context.Context, name client.ObjectKey, chunk int) (*corev1.ConfigMap, error) {
	name.Name = chunkName(name.Name, chunk)
	cm := &corev1.ConfigMap{}

	err := s.Client.Get(ctx, name, cm)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("ConfigMap %s: %w", name, ErrNotFound)
	}

	if err != nil {
		return nil, fmt.Errorf("read chart from ConfigMap %s: %w", name, err)
	}

	// any user may create a ConfigMap with this name, but an admission policy protects the label
	if !isChart(cm) {
		return nil, fmt.Errorf("ConfigMap %s is not the operator's: %w", name, ErrNotFound)
	}

	return cm, nil
}

// isChart reports whether a ConfigMap has the label of stored charts.
func isChart(cm *corev1.ConfigMap) bool { return cm.Labels[labelComponent] == componentChart }

// create creates a ConfigMap. An existing one with other content is damaged, or was not created by
// the operator: it is replaced.
func (s *Cluster) create(ctx context.Context, cm *corev1.ConfigMap) error {
	replacement := cm.DeepCopy()

	err := s.Client.Create(ctx, cm, client.FieldOwner(v1alpha2.FieldOwner))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}

	existing := &corev1.ConfigMap{}
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(cm), existing); err != nil {
		return err
	}

	if isChart(existing) &&
		bytes.Equal(existing.BinaryData[chunkKey], replacement.BinaryData[chunkKey]) &&
		existing.Annotations[annotationDigest] == replacement.Annotations[annotationDigest] {
		return nil
	}

	if err := s.Client.Delete(ctx, existing, client.Preconditions{UID: &existing.UID}); err != nil {
		return err
	}

	return s.Client.Create(ctx, replacement, client.FieldOwner(v1alpha2.FieldOwner))
}
