package patches

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/filters/patchjson6902"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// patch is an entry of spec.patches or spec.manifestPatches.
type patch struct {
	// field is the entry's field in the resource.
	field string
	// target selects the objects to change.
	target selector
	// operations is a JSON patch (RFC 6902); empty for a merge patch.
	operations string
	// fields are those that a merge patch sets, without the object's identity.
	fields map[string]any
	// strategic reports whether a merge patch merges lists as Kubernetes does, in objects of
	// Kubernetes' own kinds.
	strategic bool
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
		p.operations, err = encodeOperations(field, content)
	case map[string]any:
		p.target = takeIdentity(content)
		p.fields = content
	default:
		err = &Error{
			Field:  field,
			Reason: "neither a list of operations (JSON patch) nor a map of fields (merge patch)",
		}
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
		return nil, &Error{Field: field, Reason: "not a map of fields; spec.patches takes lists of operations"}
	}

	p := &patch{field: field, target: takeIdentity(fields), fields: fields}
	if p.target.kind == "" {
		return nil, &Error{Field: field, Reason: "kind is missing; it selects the objects to change"}
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
		return selector{}, &Error{Field: field + ".labelSelector", Reason: err.Error(), Err: err}
	}

	return s, nil
}

// decode parses the YAML of a patch. Integers become int64, as they are in objects.
func decode(field, text string) (any, error) {
	var content any

	for _, document := range split([]byte(text)) {
		decoded, err := decodeDocument(document)
		if err != nil {
			return nil, &Error{Field: field, Reason: "not YAML: " + err.Error(), Err: err}
		}

		if decoded == nil {
			continue
		}

		if content != nil {
			return nil, &Error{Field: field, Reason: "several documents; make each a patch of its own"}
		}

		content = decoded
	}

	return content, nil
}

// decodeDocument parses one YAML document; an empty one is nil.
func decodeDocument(document []byte) (any, error) {
	if _, err := limit.Document(string(document)); err != nil {
		return nil, fmt.Errorf("the patch %w", err)
	}

	data, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}

	var content any

	return content, utiljson.Unmarshal(data, &content)
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

// apply changes all documents that the target selects. It is an error if there are none, unless the patch
// changes a CRD.
func (p *patch) apply(documents []*document, crds *CRDs) error {
	matched := crds.matches(p)

	for _, d := range documents {
		if d.deleted || d.Kind == "" || !p.target.matches(d.identity) {
			continue
		}

		matched = true

		if err := p.change(d); err != nil {
			return p.failed(d.identity, err)
		}
	}

	if !matched {
		return &Error{Field: p.field, Reason: p.target.noMatch(crds.beside(documents))}
	}

	return nil
}

// failed returns the error for an object that the patch cannot be applied to.
func (p *patch) failed(id identity, err error) error {
	return &Error{Field: p.field, Reason: fmt.Sprintf("cannot be applied to %s: %s", id, withoutContent(err))}
}

// change changes one document.
func (p *patch) change(d *document) error {
	object, err := d.parse()
	if err != nil {
		return err
	}

	changed, err := p.changed(object, kyaml.TypeMeta{APIVersion: d.APIVersion, Kind: d.Kind})
	if err != nil {
		return err
	}

	if changed == nil {
		d.deleted = true
		return nil
	}

	return d.set(changed)
}

// changed returns the patched object, which may be the given one; nil if the patch deletes it.
func (p *patch) changed(object *kyaml.RNode, kind kyaml.TypeMeta) (*kyaml.RNode, error) {
	if p.operations != "" {
		return first(patchjson6902.Filter{Patch: p.operations}.Filter([]*kyaml.RNode{object}))
	}

	_, isDirective := p.fields["$patch"] // of kustomize, for objects of any kind

	if p.strategic && (isDirective || openapi.SchemaForResourceType(kind) != nil) {
		return strategicMerge(object, p.fields)
	}

	return mergePatch(object, p.fields)
}

// first returns the only object that a filter has left; nil if it has left none.
func first(objects []*kyaml.RNode, err error) (*kyaml.RNode, error) {
	if err != nil || len(objects) == 0 {
		return nil, err
	}

	return objects[0], nil
}

// withoutContent returns the text of an error without the content that kustomize quotes, which may
// be secret.
func withoutContent(err error) string {
	text, _, _ := strings.Cut(err.Error(), "node contents:")
	return strings.TrimRight(text, ": \n")
}
