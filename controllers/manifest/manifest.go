// Package manifest reads and writes the manifest of a provider's release, and changes its objects as the
// resource specifies: the additional manifests are appended, then the operator's settings for managers,
// spec.patches and spec.manifestPatches are applied in this order, spec.policies are added as annotations, and
// finally the Deployments are scaled down if the provider is paused. A [Renderer] does that as the post-renderer
// of a release.
//
// The patches apply to the provider's CRDs too, which are not part of the manifest; see [PatchCRDs].
package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/managers"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/problem"
)

// invalid returns the problem of a patch or of additional manifests that are invalid, or do not fit the provider's
// objects: the field of the resource, e.g. spec.patches[2], what is wrong, and how to fix it. It contains no values of
// variables. The cause may be nil.
func invalid(field string, cause error, format string, args ...any) error {
	found := problem.Fail(v1alpha2.ComponentsPatchErrorReason, "%s: %s", field, fmt.Sprintf(format, args...))
	found.Cause, found.Alone = cause, true // Helm wraps it in an error that quotes the manifest

	return found
}

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

// Scope reports whether the kind of an object is namespaced. For an unknown kind it returns an error that
// meta.IsNoMatchError recognizes. A client.Client is a Scope.
type Scope interface {
	IsObjectNamespaced(runtime.Object) (bool, error)
}

// Renderer changes the objects of rendered manifests. It is immutable, so several goroutines may use it.
type Renderer struct {
	in         Input
	additional []*unstructured.Unstructured
	patches    []*patch
	digest     string
}

// New returns the renderer for an input. The error is a *problem.Error if the resource, its ConfigMap or its variables
// are at fault.
func New(in Input) (*Renderer, error) {
	additional, err := in.additionalObjects()
	if err != nil {
		return nil, err
	}

	if in.Managers != nil && in.Managers.CA != "" {
		additional = append(additional, caConfigMap(in.Managers.CA, in.Namespace, in.Label))
	}

	patches, err := readPatches(in.Patches, in.ManifestPatches)
	if err != nil {
		return nil, err
	}

	digest, err := in.digest(additional)

	return &Renderer{in: in, additional: additional, patches: patches, digest: digest}, err
}

// digest returns a digest of the input. Of the variables, only those in the additional objects count.
func (in *Input) digest(additional []*unstructured.Unstructured) (string, error) {
	data, err := json.Marshal([]any{
		additional, in.Patches, in.ManifestPatches, in.Paused, asks.Defaults(in.Policies), in.Managers.Digest(),
	})
	if err != nil {
		return "", err
	}

	sum := sha256.Sum256(data)

	return hex.EncodeToString(sum[:]), nil
}

// Digest identifies what Render does: renderers with the same digest give the same results.
func (r *Renderer) Digest() string { return r.digest }

// Render returns the objects of a manifest, which it changes, with the additional ones appended and all patches
// applied. The error is a *problem.Error if a patch or an additional object does not fit.
func (r *Renderer) Render(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	boundPolicies(objects, r.in.Policies)

	objects, err := r.appendAdditional(objects)
	if err != nil {
		return nil, err
	}

	for _, deployment := range deployments(objects) {
		applySettings(r.in.Managers, deployment, r.in.Label)
	}

	budget := newBudget()

	for _, p := range r.patches {
		if objects, err = p.apply(objects, r.in.CRDs, budget); err != nil {
			return nil, err
		}
	}

	// Additional objects and patches may have brought back what reading the manifest has removed.
	for _, o := range objects {
		clean(o)
	}

	setDefaultPolicies(objects, r.in.Policies)

	if r.in.Paused {
		pause(objects)
	}

	return objects, nil
}

// appendAdditional appends the additional objects, which must not be objects of the manifest too.
func (r *Renderer) appendAdditional(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	for _, additional := range r.additional {
		for _, o := range objects {
			if object.KeyOf(o).IsSame(object.KeyOf(additional)) {
				return nil, invalid(additionalField, nil, "%s already exists; change it with spec.patches", object.KeyOf(o))
			}
		}

		objects = append(objects, additional.DeepCopy())
	}

	return objects, nil
}

// deployments returns the Deployments among objects.
func deployments(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured

	for _, o := range objects {
		if kind := o.GroupVersionKind(); kind.Group == "apps" && kind.Kind == "Deployment" {
			found = append(found, o)
		}
	}

	return found
}
