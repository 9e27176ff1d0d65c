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

// Registry keeps charts in an OCI registry, where helm, Flux and Argo CD find them too: chart
// infrastructure-aws 2.11.1 is <repository>/infrastructure-aws:2.11.1. A tag that is there is never
// changed. When it holds a chart of another content, made from other bytes or by another version of
// chartgen, the chart goes to the tag 2.11.1_<content ID, shortened>, which Helm takes for the
// version's build.
type Registry struct {
	Client *oci.Client
	// Repository is the path below which there is a repository for each provider.
	Repository oci.Reference
}

// Get finds the chart of a key. Namespaces share it.
func (s *Registry) Get(ctx context.Context, key Key) (*Stored, error) {
	for _, ref := range s.references(key) {
		artifact, err := s.Client.Artifact(ctx, ref)
		switch {
		case oci.IsReason(err, oci.NotFound):
			continue
		case err != nil:
			return nil, err
		case artifact.Manifest.Annotations[chartgen.AnnotationContentID] != key.ContentID:
			continue
		}

		found, err := s.Client.ReadChart(ctx, artifact)
		if err != nil {
			return nil, err
		}

		return s.stored(found)
	}

	return nil, fmt.Errorf("%s: %w", s.Repository.Join(key.Provider), ErrNotFound)
}

// Put pushes a chart. Its reason for not doing so is an *oci.Error.
func (s *Registry) Put(ctx context.Context, key Key, c *chart.Chart) (*Stored, error) {
	var (
		pushed *oci.Chart
		err    error
	)
	for _, ref := range s.references(key) {
		if pushed, err = s.Client.PushChart(ctx, ref, c); !oci.IsReason(err, oci.Conflict) {
			break
		}
	}

	if err != nil {
		return nil, err
	}

	return s.stored(pushed)
}

// references are where the chart of a key may be, in the order in which they are tried.
func (s *Registry) references(key Key) []oci.Reference {
	tag := oci.ChartTag(strings.TrimPrefix(key.Version, "v"))
	sum := sha256.Sum256([]byte(key.ContentID))
	repository := s.Repository.Join(key.Provider)

	return []oci.Reference{repository.WithTag(tag), repository.WithTag(tag + "_" + hex.EncodeToString(sum[:])[:12])}
}

// stored is a chart of the registry with the digest of its archive as every store has it.
func (s *Registry) stored(c *oci.Chart) (*Stored, error) {
	return &Stored{Chart: c.Chart, Reference: c.Reference.String(), Digest: c.Digest}, nil
}
