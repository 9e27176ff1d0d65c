package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Prune deletes the charts of a provider in a namespace that were stored before a time and whose
// digests are not among those to keep. The digests to keep are those of the chart in use and of every
// revision in the release's history.
func (s *Cluster) Prune(ctx context.Context, namespace, provider string, keep []string, before time.Time) error {
	chunks, err := s.listChunks(ctx, namespace, provider, nil)
	if err != nil {
		return err
	}

	for i := range chunks {
		chunk := &chunks[i]
		if !chunk.CreationTimestamp.Time.Before(before) {
			continue
		}

		digest := digestOf(chunk, chunks)
		if digest != "" && slices.Contains(keep, digest) {
			continue
		}

		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: chunk.Name}}

		err := s.Client.Delete(ctx, cm, client.Preconditions{UID: &chunk.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ConfigMap %s/%s with a chart that is no longer needed: %w", namespace, cm.Name, err)
		}
	}

	return nil
}

// digestOf returns the digest of the chart that a chunk belongs to. It is empty for a chunk without a
// first chunk, which remains from a chart that was never stored completely.
func digestOf(chunk *metav1.PartialObjectMetadata, all []metav1.PartialObjectMetadata) string {
	for i := range all {
		head := &all[i]
		if isHead(head) && (head.Name == chunk.Name || strings.HasPrefix(chunk.Name, head.Name+"-")) {
			return head.Annotations[annotationDigest]
		}
	}

	return ""
}
