package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// The directive of a strategic merge patch that deletes an object.
const (
	directiveKey    = "$patch"
	deleteDirective = "delete"
)

// Bounds of the results of all patches of a resource together, once for CRDs and once for other objects. A patch may
// change each object of a kind, or all of them.
const (
	maxPatched       = limit.MaxText
	maxPatchedValues = 2 * limit.MaxValues
	// maxCompared limits the pairs of elements that strategic merges compare: the library looks for each element of a
	// patch's lists among those of the object and of the patch. That takes some seconds.
	maxCompared = 5000000
)

// budget is what the patches of a resource may take together.
type budget struct {
	results  *limit.Budget
	compared int
}

func newBudget() *budget { return &budget{results: limit.NewBudget(maxPatched, maxPatchedValues)} }

// change returns an object with the patch, which may be the changed object itself; nil if the patch deletes it. The
// result takes its part of the budget.
func (p *patch) change(o *unstructured.Unstructured, budget *budget) (*unstructured.Unstructured, error) {
	if p.strategic && p.fields[directiveKey] == deleteDirective {
		return nil, nil
	}

	content, err := p.merged(o, budget)
	if err != nil {
		return nil, err
	}

	changed := &unstructured.Unstructured{Object: content}

	return changed, checkResult(changed, budget.results)
}

// merged returns the content of an object with the patch.
func (p *patch) merged(o *unstructured.Unstructured, budget *budget) (map[string]any, error) {
	if p.operations != nil {
		return p.operate(o)
	}

	fields := runtime.DeepCopyJSON(p.fields) // parts of it become parts of the object

	if typed, err := scheme.Scheme.New(o.GroupVersionKind()); err == nil && p.strategic {
		if err := budget.compare(o.Object, fields); err != nil {
			return nil, err
		}

		return strategicMerge(o.Object, fields, typed)
	}

	return merge(o.Object, fields).(map[string]any), nil
}

// operate applies a JSON patch.
func (p *patch) operate(o *unstructured.Unstructured) (map[string]any, error) {
	data, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}

	data, err = p.operations.Apply(data)
	if err != nil {
		return nil, err
	}

	var content map[string]any
	if utiljson.Unmarshal(data, &content) != nil {
		return nil, errNoObject
	}

	return content, nil
}

var errNoStrategicMerge = errors.New("it is not a valid strategic merge patch")

// strategicMerge applies a strategic merge patch to an object of the type.
func strategicMerge(object, fields map[string]any, typed runtime.Object) (merged map[string]any, err error) {
	schema, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, err
	}

	// The library panics if the key of an element is a list or a map.
	defer func() {
		if recover() != nil {
			err = errNoStrategicMerge
		}
	}()

	merged, err = strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(object, fields, typedFields{schema})
	if err != nil {
		return nil, withoutContent(err)
	}

	return merged, nil
}

// compare takes what a strategic merge compares.
func (b *budget) compare(object, fields map[string]any) error {
	added := elements(fields)
	if b.compared += added * (added + elements(object)); b.compared > maxCompared {
		return errors.New("the lists of strategic merges have too many elements; use a JSON patch")
	}

	return nil
}

// elements returns how many elements all lists in a value have.
func elements(value any) int {
	total := 0

	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			total += elements(child)
		}
	case []any:
		total = len(value)
		for _, child := range value {
			total += elements(child)
		}
	}

	return total
}

// typedFields are the fields of a type. Those that the type does not have, such as fields of newer versions of
// Kubernetes, are merged as in a JSON merge patch.
type typedFields struct{ strategicpatch.LookupPatchMeta }

func (f typedFields) LookupPatchMetadataForStruct(
	key string,
) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	return orUntyped(f.LookupPatchMeta.LookupPatchMetadataForStruct(key))
}

func (f typedFields) LookupPatchMetadataForSlice(
	key string,
) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	return orUntyped(f.LookupPatchMeta.LookupPatchMetadataForSlice(key))
}

func orUntyped(
	schema strategicpatch.LookupPatchMeta, meta strategicpatch.PatchMeta, err error,
) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	if err != nil {
		untyped, _ := strategicpatch.NewPatchMetaFromStruct(struct{}{})
		return typedFields{untyped}, strategicpatch.PatchMeta{}, nil //nolint:nilerr // the type has no such field
	}

	return typedFields{schema}, meta, nil
}

// withoutContent replaces an error of the library, which may quote content that is secret.
func withoutContent(err error) error {
	const noKey = "does not contain declared merge key: "

	if at := strings.LastIndex(err.Error(), noKey); at >= 0 {
		return fmt.Errorf("an element of a list has no %s", err.Error()[at+len(noKey):])
	}

	return errNoStrategicMerge
}

// merge is the function MergePatch of RFC 7396, section 2. The library evanphx/json-patch does not
// conform: it removes nulls from maps inside of lists, which replace the list in the target as they
// are.
func merge(target, patch any) any {
	fields, isMap := patch.(map[string]any)
	if !isMap {
		return patch
	}

	result, isMap := target.(map[string]any)
	if !isMap {
		result = map[string]any{}
	}

	for name, value := range fields {
		if value == nil {
			delete(result, name)
		} else {
			result[name] = merge(result[name], value)
		}
	}

	return result
}

var errNoObject = errors.New("the result is not an object: it needs apiVersion, kind and metadata.name")

// checkResult checks the result of a patch: that it is an object with values of the right types, and not too large,
// alone and together with those before.
func checkResult(o *unstructured.Unstructured, budget *limit.Budget) error {
	if err := limit.Depth(o.Object); err != nil {
		return fmt.Errorf("the result %w", err)
	}

	data, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}

	cost, err := limit.Document(string(data))
	if err != nil {
		return fmt.Errorf("the result %w", err)
	}

	if err := budget.Take(cost); err != nil {
		return fmt.Errorf("the result %w; select fewer objects, or combine patches", err)
	}

	if o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
		return errNoObject
	}

	if err := CheckType(o); err != nil {
		return fmt.Errorf("in the result, %w", err)
	}

	return nil
}
