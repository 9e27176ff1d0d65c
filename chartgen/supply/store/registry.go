package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Registry stores charts in an OCI registry, where Helm, Flux and Argo CD can use them too: the chart
// infrastructure-aws 2.11.1 is <repository>/infrastructure-aws:2.11.1.
//
// An existing tag is never moved. If it has a chart with another content ID, generated from other
// files or by another version of chartgen, the chart gets the tag 2.11.1_<hash of the content ID>,
// which Helm reads as build metadata of the version.
type Registry struct {
	Client *oci.Client
	// Repository is the parent of the repositories, one a provider.
	Repository oci.Reference
}

// Get reads the chart of a key. All namespaces share the charts in a registry. It returns
// ErrNotFound, or an *oci.Error.
func (s *Registry) Get(ctx context.Context, key Key) (*Stored, error) {
	for _, ref := range s.references(key) {
		artifact, err := s.Client.Artifact(ctx, ref)
		if oci.IsReason(err, oci.NotFound) {
			continue
		}

		if err != nil {
			return nil, err
		}

		if artifact.Manifest.Annotations[chartgen.AnnotationContentID] != key.ContentID {
			continue
		}

		found, err := s.Client.ReadChart(ctx, artifact)
		if err != nil {
			return nil, err
		}

		return newStored(found), nil
	}

	return nil, fmt.Errorf("%s: %w", s.Repository.Join(key.Provider), ErrNotFound)
}

// Put pushes a chart. It returns an *oci.Error, whose reason is Conflict if both tags of the key have
// other content.
func (s *Registry) Put(ctx context.Context, key Key, c *chart.Chart) (*Stored, error) {
	var conflict error

	for _, ref := range s.references(key) {
		pushed, err := s.Client.PushChart(ctx, ref, c)
		if err == nil {
			return newStored(pushed), nil
		}

		if !oci.IsReason(err, oci.Conflict) {
			return nil, err
		}

		conflict = err
	}

	return nil, conflict
}

// references returns the tags that the chart of a key may have, in the order in which they are tried.
func (s *Registry) references(key Key) []oci.Reference {
	const hashLength = 12

	tag := oci.ChartTag(strings.TrimPrefix(key.Version, "v"))
	sum := sha256.Sum256([]byte(key.ContentID))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	repository := s.Repository.Join(key.Provider)

	return []oci.Reference{repository.WithTag(tag), repository.WithTag(tag + "_" + hash)}
}

func newStored(c *oci.Chart) *Stored {
	return &Stored{Chart: c.Chart, Reference: c.Reference.String(), Digest: c.Digest}
}
