package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
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
	// annotationVersion is the version itself, which its label may hold cut.
	annotationVersion = v1alpha2.Prefix + "/chart-version"
	// annotationForeign is "true" on a chart that was fetched as it is.
	annotationPrebuilt = v1alpha2.Prefix + "/chart-foreign"
	labelComponent    = "app.kubernetes.io/component"
	componentChart    = "capstan-chart"
)

// Cluster keeps charts as immutable ConfigMaps beside the provider's resource: an archive, cut into
// as many as it takes. The first is written last and says how many there are, so a chart is either
// whole or not there. Charts hold no credential (no variable's value is ever part of one), so
// ConfigMaps are the right place.
type Cluster struct {
	// Client must read from the API server itself, not from a cache.
	Client client.Client
}

var _ Store = &Cluster{}

// Get reads a chart and verifies its digest.
func (s *Cluster) Get(ctx context.Context, key Key) (*Stored, error) {
	return s.load(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.objectName()})
}

// Find reads a chart of a version and verifies its digest.
func (s *Cluster) Find(ctx context.Context, query FindOptions) (*Stored, error) {
	labels := client.MatchingLabels{v1alpha2.VersionLabel: v1alpha2.LabelValue(query.Version)}
	if query.Origin != "" {
		labels[v1alpha2.OriginLabel] = v1alpha2.LabelValue(query.Origin)
	}

	heads, err := s.heads(ctx, query.Namespace, query.Provider, labels)
	if err != nil {
		return nil, err
	}

	if len(heads) == 0 {
		return nil, fmt.Errorf("%s %s in namespace %s: %w", query.Provider, query.Version, query.Namespace, ErrNotFound)
	}

	best := slices.MaxFunc(heads, func(a, b metav1.PartialObjectMetadata) int {
		preferred := func(o metav1.PartialObjectMetadata) bool { return o.Annotations[annotationDigest] == query.PreferDigest }
		if preferred(a) != preferred(b) {
			return map[bool]int{true: 1, false: -1}[preferred(a)]
		}

		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})

	return s.load(ctx, client.ObjectKeyFromObject(&best))
}

// Versions lists the versions of which there are charts for a provider in a namespace, in no order.
func (s *Cluster) Versions(ctx context.Context, namespace, provider string) ([]string, error) {
	heads, err := s.heads(ctx, namespace, provider, client.MatchingLabels{})

	versions := make([]string, 0, len(heads))
	for _, head := range heads {
		versions = append(versions, head.Annotations[annotationVersion])
	}

	slices.Sort(versions)

	return slices.Compact(versions), err
}

// heads are the first ConfigMaps of a provider's charts, without their data.
func (s *Cluster) heads(
	ctx context.Context,
	namespace, provider string,
	labels client.MatchingLabels,
) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))

	labels[labelComponent], labels[v1alpha2.ProviderLabel] = componentChart, v1alpha2.LabelValue(provider)
	if err := s.Client.List(ctx, list, client.InNamespace(namespace), labels); err != nil {
		return nil, fmt.Errorf("list stored charts of %s in namespace %s: %w", provider, namespace, err)
	}

	return slices.DeleteFunc(
		list.Items,
		func(o metav1.PartialObjectMetadata) bool { return o.Annotations[annotationChunks] == "" },
	), nil
}

// load puts the chunks of a chart together, from the name of the first.
func (s *Cluster) load(ctx context.Context, name client.ObjectKey) (*Stored, error) {
	head := &corev1.ConfigMap{}
	if err := s.read(ctx, name, 0, head); err != nil {
		return nil, err
	}

	damaged := fmt.Errorf(
		"ConfigMap %s does not hold the chart that it should; delete it, and the operator makes the chart anew: %w",
		name,
		ErrNotFound,
	)

	chunks, err := strconv.Atoi(head.Annotations[annotationChunks])
	if err != nil {
		return nil, damaged
	}

	archive := bytes.Clone(head.BinaryData[chunkKey])

	for i := 1; i < chunks; i++ {
		chunk := &corev1.ConfigMap{}
		if err := s.read(ctx, name, i, chunk); err != nil {
			return nil, err
		}

		archive = append(archive, chunk.BinaryData[chunkKey]...)
	}

	if chart.Digest(archive) != head.Annotations[annotationDigest] {
		return nil, damaged
	}

	c, err := chart.Read(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", name, err)
	}

	return &Stored{
		Chart:     c,
		Reference: reference(head),
		Digest:    head.Annotations[annotationDigest],
		Size:      len(archive),
		Prebuilt:   head.Annotations[annotationPrebuilt] != "",
	}, nil
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
			head.Annotations = map[string]string{
				annotationDigest:  digest,
				annotationChunks:  strconv.Itoa(chunks),
				annotationVersion: key.Version,
			}
			if key.IsPrebuilt() {
				head.Annotations[annotationPrebuilt] = "true"
			}
		}

		if err := s.create(ctx, head); err != nil {
			return nil, fmt.Errorf("store chart %s in ConfigMap %s: %w", c.Filename(), client.ObjectKeyFromObject(head), err)
		}
	}

	return &Stored{Chart: c, Reference: reference(head), Digest: digest, Size: len(archive), Prebuilt: key.IsPrebuilt()}, nil
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

// read reads a chunk of the chart whose first chunk has the name.
func (s *Cluster) read(ctx context.Context, name client.ObjectKey, chunk int, into *corev1.ConfigMap) error {
	name.Name = chunkName(name.Name, chunk)

	err := s.Client.Get(ctx, name, into)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("ConfigMap %s: %w", name, ErrNotFound)
	}

	if err != nil {
		return fmt.Errorf("read chart from ConfigMap %s: %w", name, err)
	}
	// anyone may write a ConfigMap of the name, but not with the label
	if into.Labels[labelComponent] != componentChart {
		return fmt.Errorf("ConfigMap %s is not the operator's: %w", name, ErrNotFound)
	}

	return nil
}

// create writes a ConfigMap. One of the same name with other data was damaged, or written by hand:
// it is replaced.
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

	if existing.Labels[labelComponent] == componentChart &&
		bytes.Equal(existing.BinaryData[chunkKey], fresh.BinaryData[chunkKey]) &&
		existing.Annotations[annotationDigest] == fresh.Annotations[annotationDigest] {
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
			Name:      chunkName(k.objectName(), chunk),
			Labels: map[string]string{
				"app.kubernetes.io/managed-by": v1alpha2.FieldOwner,
				labelComponent:                 componentChart,
				v1alpha2.ProviderLabel:         v1alpha2.LabelValue(k.Provider),
				v1alpha2.VersionLabel:          v1alpha2.LabelValue(k.Version),
				v1alpha2.ContentIDLabel:        v1alpha2.LabelValue(k.ContentID),
				v1alpha2.OriginLabel:           v1alpha2.LabelValue(k.Origin),
			},
		},
		Immutable: &immutable,
	}
}

// objectName is the name of the first chunk, readable at first sight and unique by its hash:
// "infrastructure-aws-2.11.1-3f9c2a1b04".
func (k Key) objectName() string {
	sum := sha256.Sum256([]byte(k.ContentID + " " + k.Origin))
	version := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(k.Version, "v"), "+", "-"))

	return fmt.Sprintf("%s-%s-%s", k.Provider, version, hex.EncodeToString(sum[:5]))
}

// chunkName is the name of a chart's chunk, counted from 0.
func chunkName(head string, chunk int) string {
	if chunk == 0 {
		return head
	}

	return fmt.Sprintf("%s-%d", head, chunk)
}

func reference(head *corev1.ConfigMap) string {
	return fmt.Sprintf("configmap://%s/%s", head.Namespace, head.Name)
}
