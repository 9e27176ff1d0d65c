// Package patches changes the rendered objects of a provider as its resource asks:
// additionalManifests are added, then patches or manifestPatches applied, in their order, and
// Deployments scaled down while the provider is paused. A [Renderer] is what a release takes as its
// post-renderer. What no patch touches stays byte for byte as it was.
package patches

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Error says that a patch or the additional manifests do not fit the provider's objects, or are
// wrong in themselves. It holds no value of a variable.
type Error struct {
	// Field of the resource, e.g. "spec.patches[2]".
	Field string
	// Reason says what is wrong and what to do.
	Reason string
	// Err is the cause, if there is one.
	Err error
}

func (e *Error) Error() string { return e.Field + ": " + e.Reason }
func (e *Error) Unwrap() error { return e.Err }

// Input is what a resource asks for.
type Input struct {
	// Namespace of the provider, and its label in clusterctl, e.g. "infrastructure-aws".
	Namespace, Label string
	// Additional are the additional manifests; nil for none.
	Additional *Additional
	// Variables of the provider, for the expressions in the additional manifests.
	Variables map[string]string
	// Scope tells which additional objects live in a namespace.
	Scope Scope
	// Patches and ManifestPatches of the spec.
	Patches         []v1alpha2.Patch
	ManifestPatches []string
	// Paused scales all Deployments to no replicas, whatever the patches say.
	Paused bool
}

// Scope reports whether objects of a kind live in a namespace; a client.Client does. A kind that is
// not known is an error for which meta.IsNoMatchError holds.
type Scope interface {
	IsObjectNamespaced(runtime.Object) (bool, error)
}

// Renderer changes rendered manifests. It does not change itself, and may be used by several
// goroutines. A nil one changes nothing.
type Renderer struct {
	additional []*document
	patches    []*patch
	paused     bool
	digest     string
}

// digestVersion is raised whenever the same input comes to give another result.
const digestVersion = "2"

// New makes the renderer, nil when there is nothing to change. The error is an *Error when the
// resource, its ConfigMap or its variables are at fault.
func New(in Input) (*Renderer, error) {
	if in.Additional == nil && len(in.Patches) == 0 && len(in.ManifestPatches) == 0 && !in.Paused {
		return nil, nil
	}

	r := &Renderer{paused: in.Paused}

	var err error
	if r.additional, err = in.additional(); err != nil {
		return nil, err
	}

	for i, spec := range in.Patches {
		p, err := newPatch(fmt.Sprintf("spec.patches[%d]", i), spec)
		if err != nil {
			return nil, err
		}

		r.patches = append(r.patches, p)
	}

	for i, text := range in.ManifestPatches {
		p, err := newManifestPatch(fmt.Sprintf("spec.manifestPatches[%d]", i), text)
		if err != nil {
			return nil, err
		}

		r.patches = append(r.patches, p)
	}

	r.digest, err = digest(in, r.additional)

	return r, err
}

// digest names all that the renderer is made from; of variables, what they came to.
func digest(in Input, additional []*document) (string, error) {
	texts := make([]string, 0, len(additional))
	for _, d := range additional {
		texts = append(texts, string(d.header)+string(d.text))
	}

	data, err := json.Marshal([]any{digestVersion, texts, in.Patches, in.ManifestPatches, in.Paused})
	if err != nil {
		return "", err
	}

	sum := sha256.Sum256(data)

	return hex.EncodeToString(sum[:]), nil
}

// Digest names what Render does: an equal digest means an equal result.
func (r *Renderer) Digest() string {
	if r == nil {
		return ""
	}

	return r.digest
}

// Render gives the manifest with the additional objects at its end and everything patched. What
// does not fit is an *Error.
func (r *Renderer) Render(manifest []byte) ([]byte, error) {
	if r == nil {
		return manifest, nil
	}

	documents, err := r.documents(manifest)
	if err != nil {
		return nil, err
	}

	for _, p := range r.patches {
		if err := p.apply(documents); err != nil {
			return nil, err
		}
	}

	if r.paused {
		if err := pause(documents); err != nil {
			return nil, err
		}
	}

	var out bytes.Buffer
	out.Grow(len(manifest))

	for _, d := range documents {
		if err := d.write(&out); err != nil {
			return nil, err
		}
	}

	return out.Bytes(), nil
}

// documents are those of the manifest and then the additional ones, which must be none of the
// provider's.
func (r *Renderer) documents(manifest []byte) ([]*document, error) {
	var documents []*document
	for _, text := range split(manifest) {
		documents = append(documents, newDocument(text))
	}

	for _, additional := range r.additional {
		for _, d := range documents {
			if d.same(additional.identity) {
				return nil, &Error{
					Field:  additionalField,
					Reason: fmt.Sprintf("%s is there already; change it with spec.patches", d),
				}
			}
		}

		d := *additional // patches change the copy
		documents = append(documents, &d)
	}

	return documents, nil
}
