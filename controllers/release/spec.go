package release

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// DefaultHistoryLimit is how many revisions are kept by default, as by Helm.
const DefaultHistoryLimit = 10

// Spec is the desired state of a release.
type Spec struct {
	// Release is the name of the release. Its namespace must exist.
	Release types.NamespacedName
	// Chart to install. The caller applies its CRDs before: they are never part of a release.
	Chart *chart.Chart
	// PatchedCRDs lists the CRDs of the chart that are applied with patches. It is recorded with the revision,
	// and empty if there are none.
	PatchedCRDs string
	// ChartDigest is the digest of the chart's archive: "sha256:<hex>".
	ChartDigest string
	// Values are JSON types and complete: nothing is taken over from an earlier revision. They are
	// not changed.
	Values map[string]any
	// PostRenderer changes the rendered manifest, if it is not nil.
	PostRenderer PostRenderer
	// Paused is true if the manifest runs no managers.
	Paused bool
	// HistoryLimit is how many revisions are kept; 0 means DefaultHistoryLimit. Failed attempts and
	// rollbacks count too, so it should be at least 2 × retries + 3 to keep the last healthy
	// revision.
	HistoryLimit int
	// Request is recorded with the revision. It is not part of the digest.
	Request v1alpha2.RevisionRequest
	// Inputs are recorded with the revision; zero if they are unknown.
	Inputs v1alpha2.RevisionInputs
	// Salt of the digests: that of the newest record, or a new one. It is recorded with the revision.
	Salt string
}

// PostRenderer changes the objects of a manifest after it was rendered and before it is stored and applied.
type PostRenderer interface {
	// Render returns the objects to apply, and may change the given ones. It returns the same for the same objects.
	Render(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error)
	// Digest identifies what Render does: if digests are equal, so are the results.
	Digest() string
}

func historyLimit(revisions int) int {
	if revisions > 0 {
		return revisions
	}

	return DefaultHistoryLimit
}

// digestVersion changes whenever the meaning of the digest does. All releases are then upgraded
// once.
const digestVersion = "v1"

// Digest identifies everything that a revision is created from: what the chart has of the provider, the values and the
// post-renderer. Another template, of a newer operator, is no reason for a revision. The digest is compared with that
// of a state.Revision, and reveals no values to those who do not know the salt.
func (s Spec) Digest() (string, error) {
	postRenderer := ""
	if s.PostRenderer != nil {
		postRenderer = s.PostRenderer.Digest()
	}

	inputs, err := json.Marshal(map[string]any{ // sorted by key, at every level
		"chart":        s.Chart.Metadata.Annotations[chartgen.AnnotationContentID],
		"postRenderer": postRenderer,
		"salt":         s.Salt,
		"values":       s.Values,
	})
	if err != nil {
		return "", fmt.Errorf("digest of release %s: the values are not JSON: %w", s.Release, err)
	}

	return encodeDigest(inputs), nil
}

// pausedDigest identifies what a revision becomes when it is paused, or no longer.
func pausedDigest(revision string, paused bool) string {
	return encodeDigest(fmt.Appendf(nil, "%s paused=%t", revision, paused))
}

func encodeDigest(inputs []byte) string {
	sum := sha256.Sum256(inputs)
	return digestVersion + "-" + storage.Encode(sum[:])
}

// revision returns what is known of the revision of a spec.
func (s Spec) revision() (state.Revision, error) {
	digest, err := s.Digest()

	return state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			ContentDigest: digest, Version: s.Chart.Metadata.AppVersion, ChartDigest: s.ChartDigest,
			Paused: s.Paused, Request: s.Request, Inputs: s.Inputs,
		},
	}, err
}

// values returns the values for Helm, which does not accept nil.
func (s Spec) values() map[string]any {
	if s.Values == nil {
		return map[string]any{}
	}

	return s.Values
}

// chartName returns the name and version of the chart for messages.
func (s Spec) chartName() string { return s.Chart.Metadata.Name + " " + s.Chart.Metadata.Version }
