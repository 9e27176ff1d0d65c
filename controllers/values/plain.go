package values

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/limit"
)

const valuesField = "spec.values"

// Plain returns the values of a chart that chartgen did not build: those of spec.values. The error is a
// *CustomizationError if they are not an object, or too large.
func Plain(spec *v1alpha2.ProviderSpec) (map[string]any, error) {
	values := map[string]any{}
	if spec.Values == nil || len(bytes.TrimSpace(spec.Values.Raw)) == 0 {
		return values, nil
	}

	if err := limit.List(spec.Values.Raw, limit.MaxDocumentValues); err != nil {
		return nil, &CustomizationError{Field: valuesField, Reason: "it " + err.Error()}
	}

	if err := json.Unmarshal(spec.Values.Raw, &values); err != nil || values == nil {
		return nil, &CustomizationError{Field: valuesField, Reason: "it must be an object, like a values.yaml"}
	}

	if err := limit.Depth(values); err != nil {
		return nil, &CustomizationError{Field: valuesField, Reason: "it " + err.Error()}
	}

	return values, nil
}

// checkNotPlain makes sure that the resource does not set values of a chart that chartgen built: these
// are computed from the other fields.
func (s *Schema) checkNotPlain(spec *v1alpha2.ProviderSpec) error {
	if spec.Values == nil {
		return nil
	}

	return &CustomizationError{Field: valuesField, Reason: fmt.Sprintf(
		"the chart of %s was built from a provider's components and does not accept it; remove it, and use "+
			"spec.variables, spec.manager, spec.deployment or spec.patches", s.Label)}
}
