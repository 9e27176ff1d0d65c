package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Registry shares charts in an OCI registry, where Helm, Flux and Argo CD can use them too: the chart
// infrastructure-aws 2.11.1 is <repository>/infrastructure-aws:2.11.1. Operators read charts there as
// from any other source, see source.ChartsFirst.
//
// An existing tag is never moved. If it has another chart, generated from other files, from another
// source or by another version of chartgen, the chart gets the tag 2.11.1_<hash of its content ID and
// source>, which Helm reads as build metadata of the version.
type Registry struct {
	Client *oci.Client
	// Repository is the parent of the repositories, one a provider.
	Repository oci.Reference
}

// Push pushes a chart that was generated from a version's components. It returns an *oci.Error, whose
// reason is Conflict if both of its tags have other content.
func (s *Registry) Push(ctx context.Context, version string, c *chart.Chart) (oci.Reference, error) {
	var conflict error

	for _, ref := range s.references(version, c) {
		pushed, err := s.Client.PushChart(ctx, ref, c)
		if err == nil {
			return pushed.Reference, nil
		}

		if !oci.IsReason(err, oci.Conflict) {
			return oci.Reference{}, err
		}

		conflict = err
	}

	return oci.Reference{}, conflict
}

// references returns the tags that a chart may have, in the order in which they are tried.
func (s *Registry) references(version string, c *chart.Chart) []oci.Reference {
	const hashLength = 12

	tag := oci.ChartTag(strings.TrimPrefix(version, "v"))
	annotations := c.Metadata.Annotations
	sum := sha256.Sum256([]byte(annotations[chartgen.AnnotationContentID] + " " + annotations[chartgen.AnnotationSource]))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	repository := s.Repository.Join(c.Metadata.Name)

	return []oci.Reference{repository.WithTag(tag), repository.WithTag(tag + "_" + hash)}
}
