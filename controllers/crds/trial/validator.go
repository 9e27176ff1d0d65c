package trial

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// validator applies the schema of one version of a CRD to objects as the API server does, with the
// API server's own code.
type validator struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
	// messages are those of the rules that have a fixed one.
	messages sets.Set[string]
	// preserveUnknownFields is the CRD's spec.preserveUnknownFields.
	preserveUnknownFields bool
}

func newValidator(
	crd *apiextensionsv1.CustomResourceDefinition,
	version *apiextensionsv1.CustomResourceDefinitionVersion,
) (*validator, error) {
	v, err := compileSchema(rootSchema(version.Schema))
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s has an invalid schema in version %s: %w",
			crd.Name, version.Name, err)
	}

	v.preserveUnknownFields = crd.Spec.PreserveUnknownFields

	return v, nil
}

// rootSchema returns the schema of a whole object. A version without a schema accepts everything.
func rootSchema(v *apiextensionsv1.CustomResourceValidation) *apiextensionsv1.JSONSchemaProps {
	if v == nil || v.OpenAPIV3Schema == nil {
		everything := true
		return &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &everything}
	}

	return v.OpenAPIV3Schema
}

func compileSchema(root *apiextensionsv1.JSONSchemaProps) (*validator, error) {
	internal := &apiextensions.JSONSchemaProps{}

	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(root, internal, nil)
	if err != nil {
		return nil, err
	}

	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, err
	}

	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}

	schema, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, err
	}

	return &validator{
		structural: structural,
		schema:     schema,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
		messages:   messagesOf(structural),
	}, nil
}

// messagesOf returns the fixed messages of a schema's rules.
func messagesOf(s *structuralschema.Structural) sets.Set[string] {
	messages := sets.New[string]()

	visitor := structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
		for _, rule := range s.XValidations {
			messages.Insert(rule.Message)
		}

		return false
	}}
	visitor.Visit(s)

	return messages
}

// prune removes the fields that the schema does not define and returns their paths.
func (v *validator) prune(object map[string]any) []string {
	if v.preserveUnknownFields {
		return nil
	}

	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}

	return pruning.PruneWithOptions(object, v.structural, true, options)
}

// setDefaults sets the defaults of fields that are missing.
func (v *validator) setDefaults(object map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	defaulting.Default(object, v.structural)
}

// validate validates a new object.
func (v *validator) validate(ctx context.Context, object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, v.schema)
	errs = append(errs, objectmeta.Validate(nil, object, v.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)

	// CEL rules expect an object of the right types.
	if v.rules == nil || preventsRules(errs) {
		return errs
	}

	broken, _ := v.rules.Validate(ctx, nil, v.structural, object, nil, celconfig.RuntimeCELCostBudget)

	for _, err := range broken {
		// The message of a rule can be an expression with values of the object.
		if !strings.HasPrefix(err.Detail, "failed rule: ") && !v.messages.Has(err.Detail) {
			err.Detail = ""
		}
	}

	return append(errs, broken...)
}

// preventsRules reports whether the API server would not run CEL rules after these errors.
func preventsRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported,
			field.ErrorTypeRequired,
			field.ErrorTypeTooLong,
			field.ErrorTypeTooMany,
			field.ErrorTypeTypeInvalid:
			return true
		}
	}

	return false
}

// removeDefaults removes the fields that have their default value.
func removeDefaults(x any, s *structuralschema.Structural) {
	if s == nil {
		return
	}

	switch x := x.(type) {
	case map[string]any:
		for key, value := range x {
			property, known := s.Properties[key]

			switch {
			case known && property.Default.Object != nil && reflect.DeepEqual(value, property.Default.Object):
				delete(x, key)
			case known:
				removeDefaults(value, &property)
			case s.AdditionalProperties != nil:
				removeDefaults(value, s.AdditionalProperties.Structural)
			}
		}
	case []any:
		for _, item := range x {
			removeDefaults(item, s.Items)
		}
	}
}
