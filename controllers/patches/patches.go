// Package patches changes the rendered manifest of a provider as its resource specifies: the additional
// manifests are appended, then the operator's settings for managers, spec.patches and spec.manifestPatches
// are applied in this order, spec.policies are added as annotations, the objects of a chart that chartgen did
// not build get the provider's labels, and finally the Deployments are scaled down if the provider is paused.
// A [Renderer] does that as the post-renderer of a release. Objects that nothing matches stay the same byte for
// byte, unless they get labels or annotations.
//
// The patches apply to the provider's CRDs too, which are not part of the manifest; see [PatchCRDs].
package patches

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/managers"
	"github.com/capstan-project/capstan/controllers/release/policies"
)

// Error reports that a patch or the additional manifests are invalid, or do not fit the provider's
// objects. It contains no values of variables.
type Error struct {
	// Field of the resource, e.g. "spec.patches[2]".
	Field string
	// Reason is what is wrong, and how to fix it.
	Reason string
	// Err is the cause; it may be nil.
	Err error
}

func (e *Error) Error() string { return e.Field + ": " + e.Reason }
func (e *Error) Unwrap() error { return e.Err }

// Input describes the changes to a provider's manifest.
type Input struct {
	// Namespace is the provider's.
	Namespace string
	// Label is the provider's clusterctl label, e.g. "infrastructure-aws".
	Label string
	// Additional are the additional manifests; nil for none.
	Additional *Additional
	// Variables are the provider's, for the expressions in the additional manifests.
	Variables map[string]string
	// Scope is asked for the scope of the additional objects.
	Scope Scope
	// Patches are those of spec.patches.
	Patches []v1alpha2.Patch
	// ManifestPatches are those of spec.manifestPatches.
	ManifestPatches []string
	// CRDs are those of the chart with the same patches, which need not match another object then; nil if
	// there are none.
	CRDs *CRDs
	// Managers are the operator's settings for all Deployments, which the patches can override; nil for none.
	Managers *managers.Settings
	// Policies are the defaults for all objects, of spec.policies; nil for none.
	Policies *v1alpha2.PoliciesSpec
	// Paused scales all Deployments to zero, overriding the patches.
	Paused bool
}

// Scope reports whether the kind of an object is namespaced. For an unknown kind the error is one
// that meta.IsNoMatchError recognizes. A client.Client is a Scope.
type Scope interface {
	IsObjectNamespaced(runtime.Object) (bool, error)
}

// Renderer changes rendered manifests. It is immutable, so several goroutines may use it. A nil
// Renderer only keeps the publisher's policies within the defaults.
type Renderer struct {
	additional []*document
	patches    []*patch
	crds       *CRDs
	managers   *managers.Settings
	policies   *v1alpha2.PoliciesSpec
	paused     bool
	provider   string // its label
	digest     string
}

// digestVersion must be changed whenever the same input renders differently.
const digestVersion = "2"

// New returns the renderer for an input; nil if the input asks for nothing. The error is an *Error if the
// resource, its ConfigMap or its variables are at fault.
func New(in Input) (*Renderer, error) {
	if in.Additional == nil && len(in.Patches) == 0 && len(in.ManifestPatches) == 0 && in.Managers == nil &&
		len(policies.Defaults(in.Policies)) == 0 && !in.Paused {
		return nil, nil
	}

	additional, err := in.additionalDocuments()
	if err != nil {
		return nil, err
	}

	configMap, err := in.Managers.ConfigMap(in.Namespace, in.Label)
	if err != nil {
		return nil, err
	}

	if configMap != "" {
		additional = append(additional, newDocument([]byte("---\n# Source: --"+managers.CAFlag+"\n"+configMap)))
	}

	patches, err := in.patches()
	if err != nil {
		return nil, err
	}

	digest, err := in.digest(additional)
	if err != nil {
		return nil, err
	}

	return &Renderer{
		additional: additional,
		patches:    patches,
		crds:       in.CRDs,
		managers:   in.Managers,
		policies:   in.Policies,
		paused:     in.Paused,
		provider:   in.Label,
		digest:     digest,
	}, nil
}

// patches reads the entries of spec.patches and then those of spec.manifestPatches.
func (in *Input) patches() ([]*patch, error) {
	patches := make([]*patch, 0, len(in.Patches)+len(in.ManifestPatches))

	for i, spec := range in.Patches {
		p, err := newPatch(fmt.Sprintf("spec.patches[%d]", i), spec)
		if err != nil {
			return nil, err
		}

		patches = append(patches, p)
	}

	for i, text := range in.ManifestPatches {
		p, err := newManifestPatch(fmt.Sprintf("spec.manifestPatches[%d]", i), text)
		if err != nil {
			return nil, err
		}

		patches = append(patches, p)
	}

	return patches, nil
}

// digest returns a digest of the input. Of the variables, only those in the additional documents
// count.
func (in *Input) digest(additional []*document) (string, error) {
	texts := make([]string, 0, len(additional))
	for _, d := range additional {
		texts = append(texts, string(d.header)+string(d.text))
	}

	content := []any{digestVersion, texts, in.Patches, in.ManifestPatches, in.Paused}
	if defaults := policies.Defaults(in.Policies); len(defaults) > 0 {
		content = append(content, defaults)
	}

	if in.Managers != nil {
		content = append(content, in.Managers.Digest())
	}

	data, err := json.Marshal(content)
	if err != nil {
		return "", err
	}

	sum := sha256.Sum256(data)

	return hex.EncodeToString(sum[:]), nil
}

// Digest identifies what Render does: renderers with the same digest give the same results.
func (r *Renderer) Digest() string {
	if r == nil {
		return ""
	}

	return r.digest
}

// Render returns the manifest with the additional objects appended and all patches applied. The
// error is an *Error if a patch or an additional object does not fit.
func (r *Renderer) Render(manifest []byte) ([]byte, error) {
	if r == nil {
		r = &Renderer{}
	}

	published := read(manifest)
	if err := boundPolicies(published, r.policies); err != nil {
		return nil, err
	}

	documents, err := r.documents(published)
	if err != nil {
		return nil, err
	}

	if r.managers != nil {
		apply := func(object *kyaml.RNode) (bool, error) { return r.managers.Apply(object, r.provider) }
		if err := eachDeployment(documents, apply); err != nil {
			return nil, err
		}
	}

	for _, p := range r.patches {
		if err := p.apply(documents, r.crds); err != nil {
			return nil, err
		}
	}

	if err := annotate(documents, policies.Defaults(r.policies)); err != nil {
		return nil, err
	}

	if r.paused {
		if err := pause(documents); err != nil {
			return nil, err
		}
	}

	return join(documents, len(manifest))
}

// documents returns the documents of the manifest, and then the additional ones, which must not be
// objects of the manifest too.
func (r *Renderer) documents(documents []*document) ([]*document, error) {
	for _, additional := range r.additional {
		for _, d := range documents {
			if d.sameObject(additional.identity) {
				return nil, &Error{
					Field:  additionalField,
					Reason: fmt.Sprintf("%s already exists; change it with spec.patches", d),
				}
			}
		}

		unpatched := *additional // patches change the copy
		documents = append(documents, &unpatched)
	}

	return documents, nil
}
