package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// Cluster stores charts as immutable ConfigMaps in the namespace of the provider's resource. A
// chart's archive is split into chunks, one a ConfigMap. The first chunk has the number of chunks and
// the digest, and is written last: a chart is either complete or absent.
//
// ConfigMaps are sufficient, since a chart contains no credentials: the values of variables are never
// part of it.
//
// What is read has the digest that it says, and that is all: a user who can write ConfigMaps there can store
// any chart under any key. Callers must know from elsewhere which digests to trust.
type Cluster struct {
	// Client must read from the API server, not from a cache.
	Client client.Client
}

// Get reads the chart of a key and verifies its digest. It returns ErrNotFound if the chart must be generated.
func (s *Cluster) Get(ctx context.Context, key Key) (*Stored, error) {
	return s.load(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.objectName()})
}

// Find reads the chart with a digest, or returns ErrNotFound. Several ConfigMaps may claim to hold it: the first whose
// content really has the digest is returned.
func (s *Cluster) Find(ctx context.Context, options FindOptions) (*Stored, error) {
	labels := client.MatchingLabels{v1alpha2.VersionLabel: v1alpha2.LabelValue(options.Version)}

	heads, err := s.listHeads(ctx, options.Namespace, options.Provider, labels)
	if err != nil {
		return nil, err
	}

	notFound := fmt.Errorf("chart %s of %s %s in namespace %s: %w",
		options.Digest, options.Provider, options.Version, options.Namespace, ErrNotFound)

	for i := range heads {
		if heads[i].Annotations[annotationDigest] != options.Digest {
			continue
		}

		stored, err := s.load(ctx, client.ObjectKeyFromObject(&heads[i]))
		if errors.Is(err, ErrNotFound) {
			notFound = err

			continue
		}

		return stored, err
	}

	return nil, notFound
}

// Put stores the chunks of a chart from the last to the first. Storing the same chart again changes nothing.
func (s *Cluster) Put(ctx context.Context, key Key, c *chart.Chart) (*Stored, error) {
	archive, err := c.Archive()
	if err != nil {
		return nil, err
	}

	digest := chart.Digest(archive)
	chunks := max(1, (len(archive)+chunkSize-1)/chunkSize)

	if chunks > maxChunks {
		return nil, fmt.Errorf("chart %s is larger than %d KiB", c.Filename(), maxChunks*chunkSize>>10)
	}

	var head *corev1.ConfigMap

	for i := chunks - 1; i >= 0; i-- {
		data := archive[i*chunkSize : min(len(archive), (i+1)*chunkSize)]
		head = key.configMap(i, data)

		if i == 0 {
			head.Annotations = map[string]string{
				annotationDigest: digest,
				annotationChunks: strconv.Itoa(chunks),
			}
			if key.IsPrebuilt() {
				head.Annotations[annotationPrebuilt] = "true"
			}
		}

		if err := s.create(ctx, head); err != nil {
			return nil, fmt.Errorf("store chart %s in ConfigMap %s: %w", c.Filename(), client.ObjectKeyFromObject(head), err)
		}
	}

	return &Stored{
		Chart:     c,
		Reference: reference(head),
		Digest:    digest,
		Size:      len(archive),
		Prebuilt:  key.IsPrebuilt(),
	}, nil
}

// Delete deletes the ConfigMaps of a provider's charts.
func (s *Cluster) Delete(ctx context.Context, namespace, provider string) error {
	err := s.Client.DeleteAllOf(
		ctx,
		&corev1.ConfigMap{},
		client.InNamespace(namespace),
		client.MatchingLabels{labelComponent: componentChart, v1alpha2.ProviderLabel: v1alpha2.LabelValue(provider)},
	)
	if err != nil {
		return fmt.Errorf("delete stored charts of %s in namespace %s: %w", provider, namespace, err)
	}

	return nil
}

// load reads the chart whose first chunk has the name.
func (s *Cluster) load(ctx context.Context, name client.ObjectKey) (*Stored, error) {
	head, err := s.readChunk(ctx, name, 0)
	if err != nil {
		return nil, err
	}

	errDamaged := fmt.Errorf(
		"ConfigMap %s holds a damaged chart; delete it, and the operator generates the chart again: %w",
		name,
		ErrNotFound,
	)

	chunks, err := strconv.Atoi(head.Annotations[annotationChunks])
	if err != nil || chunks > maxChunks {
		return nil, errDamaged
	}

	archive := bytes.Clone(head.BinaryData[chunkKey])

	for i := 1; i < chunks; i++ {
		chunk, err := s.readChunk(ctx, name, i)
		if err != nil {
			return nil, err
		}

		archive = append(archive, chunk.BinaryData[chunkKey]...)
	}

	digest := head.Annotations[annotationDigest]
	if chart.Digest(archive) != digest {
		return nil, errDamaged
	}

	c, err := chart.Read(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w: %w", name, err, ErrNotFound)
	}

	return &Stored{
		Chart:     c,
		Reference: reference(head),
		Digest:    digest,
		Size:      len(archive),
		Prebuilt:  head.Annotations[annotationPrebuilt] != "",
	}, nil
}
