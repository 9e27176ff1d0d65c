package manifest

import (
	"fmt"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/controllers/object"
)

// patch is an entry of spec.patches or spec.manifestPatches.
type patch struct {
	// field is the entry's field in the resource.
	field string
	// target selects the objects to change.
	target selector
	// operations is a JSON patch (RFC 6902); nil for a merge patch.
	operations jsonpatch.Patch
	// fields are those that a merge patch sets, without the object's identity.
	fields map[string]any
	// strategic reports whether a merge patch merges lists as Kubernetes does, in objects of
	// Kubernetes' own kinds.
	strategic bool
}

// readPatches reads the entries of spec.patches and then those of spec.manifestPatches. The error is a
// *problem.Error.
func readPatches(specs []v1alpha2.Patch, manifestPatches []string) ([]*patch, error) {
	patches := make([]*patch, 0, len(specs)+len(manifestPatches))

	for i, spec := range specs {
		p, err := newPatch(fmt.Sprintf("spec.patches[%d]", i), spec)
		if err != nil {
			return nil, err
		}

		patches = append(patches, p)
	}

	for i, text := range manifestPatches {
		p, err := newManifestPatch(fmt.Sprintf("spec.manifestPatches[%d]", i), text)
		if err != nil {
			return nil, err
		}

		patches = append(patches, p)
	}

	return patches, nil
}

// newPatch reads an entry of spec.patches.
func newPatch(field string, spec v1alpha2.Patch) (*patch, error) {
	p := &patch{field: field, strategic: true}

	content, err := decode(field, spec.Patch)
	if err != nil {
		return nil, err
	}

	switch content := content.(type) {
	case []any:
		p.operations, err = readOperations(field, content)
	case map[string]any:
		if directive, exists := content[directiveKey]; exists && directive != deleteDirective {
			return nil, invalid(field, nil, "$patch of a whole object must be delete")
		}

		p.target = takeIdentity(content)
		p.fields = content
	default:
		err = invalid(field, nil, "neither a list of operations (JSON patch) nor a map of fields (merge patch)")
	}

	if err != nil {
		return nil, err
	}

	if spec.Target != nil {
		p.target, err = newSelector(field+".target", spec.Target)
	}

	return p, err
}

// newManifestPatch reads an entry of spec.manifestPatches.
func newManifestPatch(field, text string) (*patch, error) {
	content, err := decode(field, text)
	if err != nil {
		return nil, err
	}

	fields, isMap := content.(map[string]any)
	if !isMap {
		return nil, invalid(field, nil, "not a map of fields; spec.patches takes lists of operations")
	}

	p := &patch{field: field, target: takeIdentity(fields), fields: fields}
	if p.target.kind == "" {
		return nil, invalid(field, nil, "kind is missing; it selects the objects to change")
	}

	return p, nil
}

// newSelector returns the selector of a patch's target.
func newSelector(field string, target *v1alpha2.PatchTarget) (selector, error) {
	s := selector{
		group:     target.Group,
		version:   target.Version,
		kind:      target.Kind,
		name:      target.Name,
		namespace: target.Namespace,
	}

	if target.LabelSelector == "" {
		return s, nil
	}

	var err error
	if s.labels, err = labels.Parse(target.LabelSelector); err != nil {
		return selector{}, invalid(field+".labelSelector", err, "%v", err)
	}

	return s, nil
}

// decode parses the YAML of a patch, which is one document. Integers become int64, as they are in objects.
func decode(field, text string) (any, error) {
	var content any

	for document := range strings.SplitSeq("\n"+text, "\n---") {
		decoded, err := decodePatch(document)
		if err != nil {
			return nil, invalid(field, err, "not YAML: %v", err)
		}

		if decoded == nil {
			continue
		}

		if content != nil {
			return nil, invalid(field, nil, "several documents; make each a patch of its own")
		}

		content = decoded
	}

	return content, nil
}

// decodePatch parses one YAML document; an empty one is nil.
func decodePatch(document string) (any, error) {
	if _, err := limit.Document(document); err != nil {
		return nil, fmt.Errorf("the patch %w", err)
	}

	data, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		return nil, err
	}

	var content any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, err
	}

	if err := limit.Depth(content); err != nil {
		return nil, fmt.Errorf("the patch %w", err)
	}

	return content, nil
}

// takeIdentity removes the fields of an object's identity from a merge patch, and returns the
// selector of that object. The identity must not remain in the patch, because a patch never turns
// one object into another.
func takeIdentity(fields map[string]any) selector {
	take := func(from map[string]any, key string) string {
		value, _ := from[key].(string)
		delete(from, key)

		return value
	}
	metadata, _ := fields["metadata"].(map[string]any)

	return selector{
		apiVersion: take(fields, "apiVersion"),
		kind:       take(fields, "kind"),
		name:       take(metadata, "name"),
		namespace:  take(metadata, "namespace"),
	}
}

// apply changes all objects that the target selects, and returns those that are left. It is an error if there are
// none, unless the patch changes a CRD. All patches have one budget.
func (p *patch) apply(
	objects []*unstructured.Unstructured, crds *CRDs, budget *budget,
) ([]*unstructured.Unstructured, error) {
	matched := crds.matches(p)
	left := make([]*unstructured.Unstructured, 0, len(objects))

	for _, o := range objects {
		if p.target.matches(o) {
			matched = true

			key := object.KeyOf(o)

			changed, err := p.change(o, budget)
			if err != nil {
				return nil, p.failed(key, err)
			}

			o = changed
		}

		if o != nil {
			left = append(left, o)
		}
	}

	if !matched {
		return nil, invalid(p.field, nil, "%s", p.target.noMatch(crds.beside(objects)))
	}

	return left, nil
}

// failed returns the error for an object that the patch cannot be applied to.
func (p *patch) failed(o object.Key, err error) error {
	return invalid(p.field, nil, "cannot be applied to %s: %v", o, err)
}
