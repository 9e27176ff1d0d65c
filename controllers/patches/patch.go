package patches

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/filters/patchjson6902"
	"sigs.k8s.io/kustomize/api/filters/patchstrategicmerge"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// patch is one entry of spec.patches or spec.manifestPatches.
type patch struct {
	// field of the resource.
	field string
	// target selects the objects.
	target selector
	// operations is a JSON patch (RFC 6902); empty for a merge patch.
	operations string
	// fields are what a merge patch sets, without the object's identity.
	fields map[string]any
	// strategic says that lists are merged as Kubernetes does, in kinds of which it is known how.
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
		if p.operations, err = operations(field, content); err != nil {
			return nil, err
		}
	case map[string]any:
		p.merge(content)
	default:
		return nil, &Error{
			Field:  field,
			Reason: "neither a list of operations (JSON patch) nor a map of fields (merge patch)",
		}
	}

	if spec.Target == nil {
		return p, nil
	}

	p.target = selector{
		group:     spec.Target.Group,
		version:   spec.Target.Version,
		kind:      spec.Target.Kind,
		name:      spec.Target.Name,
		namespace: spec.Target.Namespace,
	}
	if spec.Target.LabelSelector != "" {
		if p.target.labels, err = labels.Parse(spec.Target.LabelSelector); err != nil {
			return nil, &Error{Field: field + ".target.labelSelector", Reason: err.Error(), Err: err}
		}
	}

	return p, nil
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

	p := &patch{field: field}
	p.merge(fields)

	if p.target.kind == "" {
		return nil, &Error{Field: field, Reason: "kind is missing: it says which objects to change"}
	}

	return p, nil
}

// decode reads the YAML of a patch. Whole numbers are int64, as they are in objects.
func decode(field, text string) (content any, err error) {
	for _, document := range split([]byte(text)) {
		var one any

		data, err := yaml.YAMLToJSON(document)
		if err == nil {
			err = utiljson.Unmarshal(data, &one)
		}

		switch {
		case err != nil:
			return nil, &Error{Field: field, Reason: "not YAML: " + err.Error(), Err: err}
		case one != nil && content != nil:
			return nil, &Error{Field: field, Reason: "several documents; make each a patch of its own"}
		case one != nil:
			content = one
		}
	}

	return content, nil
}

// merge makes it a merge patch of these fields. Those that say which object it is select, unless a
// target takes their place; a merge patch never makes one object another.
func (p *patch) merge(fields map[string]any) {
	take := func(from map[string]any, key string) string {
		value, _ := from[key].(string)
		delete(from, key)

		return value
	}
	metadata, _ := fields["metadata"].(map[string]any)
	p.target = selector{
		apiVersion: take(
			fields,
			"apiVersion",
		),
		kind:      take(fields, "kind"),
		name:      take(metadata, "name"),
		namespace: take(metadata, "namespace"),
	}
	p.fields = fields
}

// operands are the operations of a JSON patch and what each needs beside its path.
var operands = map[string]string{
	"add":     "value",
	"copy":    "from",
	"move":    "from",
	"remove":  "",
	"replace": "value",
	"test":    "value",
}

// operations checks a JSON patch, so that what is wrong with it is said by the number of the
// operation.
func operations(field string, list []any) (string, error) {
	for i, entry := range list {
		operation, _ := entry.(map[string]any)
		op, _ := operation["op"].(string)
		operand, known := operands[op]
		path, isText := operation["path"].(string)
		_, complete := operation[operand]
		problem := ""

		switch {
		case !known:
			problem = "op must be one of " + strings.Join(slices.Sorted(maps.Keys(operands)), ", ")
		case !isText || !strings.HasPrefix(path, "/"):
			problem = "path must begin with /"
		case operand != "" && !complete:
			problem = op + " needs a " + operand
		}

		if problem != "" {
			return "", &Error{Field: field, Reason: fmt.Sprintf("operation %d: %s", i+1, problem)}
		}
	}

	data, err := json.Marshal(list)

	return string(data), err
}

// apply changes all documents that the patch is for. That there is none is an error.
func (p *patch) apply(documents []*document) error {
	matched := false

	for _, d := range documents {
		if d.deleted || d.Kind == "" || !p.target.matches(d.identity) {
			continue
		}

		matched = true

		if err := p.change(d); err != nil {
			return &Error{Field: p.field, Reason: fmt.Sprintf("cannot be applied to %s: %s", d, reason(err))}
		}
	}

	if !matched {
		return &Error{Field: p.field, Reason: p.target.missed(documents)}
	}

	return nil
}

// change changes one document.
func (p *patch) change(d *document) error {
	object, err := d.parse()
	if err != nil {
		return err
	}

	result := []*kyaml.RNode{object}

	switch {
	case p.operations != "":
		result, err = patchjson6902.Filter{Patch: p.operations}.Filter(result)
	case p.strategic && openapi.SchemaForResourceType(kyaml.TypeMeta{APIVersion: d.APIVersion, Kind: d.Kind}) != nil:
		result, err = strategicMerge(object, p.fields)
	default:
		result[0], err = mergePatch(object, p.fields)
	}

	if err != nil {
		return err
	}

	if len(result) == 0 {
		d.deleted = true
		return nil
	}

	return d.set(result[0])
}

// strategicMerge applies a strategic merge patch. The result is empty when the patch deletes the
// object.
func strategicMerge(object *kyaml.RNode, fields map[string]any) ([]*kyaml.RNode, error) {
	patch, err := node(fields)
	if err != nil {
		return nil, err
	}

	filter := patchstrategicmerge.Filter{Patch: patch}
	if _, directive := fields["$patch"]; directive {
		return filter.Filter([]*kyaml.RNode{object})
	}
	// kustomize walks through all of the object it is given, and that is slow: it gets what the
	// patch is about.
	part := kyaml.NewMapRNode(nil)

	keys := slices.Sorted(maps.Keys(fields))
	for _, key := range append([]string{"apiVersion", "kind"}, keys...) {
		if field := object.Field(key); field != nil {
			part.YNode().Content = append(part.YNode().Content, field.Key.YNode(), field.Value.YNode())
		}
	}

	if _, err := filter.Filter([]*kyaml.RNode{part}); err != nil {
		return nil, err
	}

	for _, key := range keys {
		change := kyaml.Filter(kyaml.Clear(key))
		if field := part.Field(key); field != nil {
			change = kyaml.SetField(key, field.Value)
		}

		if err := object.PipeE(change); err != nil {
			return nil, err
		}
	}

	return []*kyaml.RNode{object}, nil
}

// mergePatch applies a JSON merge patch (RFC 7396).
func mergePatch(object *kyaml.RNode, fields map[string]any) (*kyaml.RNode, error) {
	data, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}

	var content any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, err
	}

	return node(merged(content, fields))
}

// node makes kustomize's form of a value of JSON's types.
func node(value any) (*kyaml.RNode, error) {
	data, err := yaml.Marshal(value)
	if err != nil {
		return nil, err
	}

	return kyaml.Parse(string(data))
}

// merged is the function of RFC 7396, section 2.
func merged(target, patch any) any {
	fields, isMap := patch.(map[string]any)
	if !isMap {
		return patch
	}

	result, isMap := target.(map[string]any)
	if !isMap {
		result = map[string]any{}
	}

	for key, value := range fields {
		if value == nil {
			delete(result, key)
		} else {
			result[key] = merged(result[key], value)
		}
	}

	return result
}

// reason is what an error of the libraries says, without the content that some of them quote.
func reason(err error) string {
	text, _, _ := strings.Cut(err.Error(), "node contents:")
	return strings.TrimRight(text, ": \n")
}
