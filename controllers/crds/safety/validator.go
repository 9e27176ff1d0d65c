package safety

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// validator does to objects what the API server does by the schema of one version of a CRD, with
// the API server's own parts.
type validator struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
	keeps      bool // fields that the schema does not have, everywhere
}

func newValidator(
	crd *apiextensionsv1.CustomResourceDefinition,
	version *apiextensionsv1.CustomResourceDefinitionVersion,
) (*validator, error) {
	failed := func(err error) (*validator, error) {
		return nil, fmt.Errorf(
			"CustomResourceDefinition %s, version %s, has a schema that is not valid: %w",
			crd.Name,
			version.Name,
			err,
		)
	}

	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		root(version.Schema),
		internal,
		nil,
	); err != nil {
		return failed(err)
	}

	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return failed(err)
	}

	if err := defaulting.PruneDefaults(structural); err != nil {
		return failed(err)
	}

	schema, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return failed(err)
	}

	return &validator{
		structural: structural, schema: schema, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit),
		keeps: crd.Spec.PreserveUnknownFields,
	}, nil
}

// prune drops the fields that the schema does not have, and tells which.
func (v *validator) prune(object map[string]any) []string {
	if v.keeps {
		return nil
	}

	return pruning.PruneWithOptions(
		object,
		v.structural,
		true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true},
	)
}

// fill sets the defaults.
func (v *validator) fill(object map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	defaulting.Default(object, v.structural)
}

// create validates an object that is new.
func (v *validator) create(ctx context.Context, object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, v.schema)
	errs = append(errs, objectmeta.Validate(nil, object, v.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)

	return append(errs, v.validateRules(ctx, errs, object, nil)...)
}

// update validates an object that has replaced another. What is wrong with a field that is as it
// was is forgiven.
func (v *validator) update(ctx context.Context, object, old map[string]any) field.ErrorList {
	correlated := common.NewCorrelatedObject(object, old, &model.Structural{Structural: v.structural})
	errs := validation.ValidateCustomResourceUpdate(nil, object, old, v.schema, validation.WithRatcheting(correlated))

	errs = append(errs, objectmeta.Validate(nil, object, v.structural, false)...)
	if len(listtype.ValidateListSetsAndMaps(nil, v.structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	}

	return append(errs, v.validateRules(ctx, errs, object, old, cel.WithRatcheting(correlated))...)
}

// validateRules runs the CEL rules, which expect an object whose types are right.
func (v *validator) validateRules(
	ctx context.Context,
	errs field.ErrorList,
	object, old map[string]any,
	options ...cel.Option,
) field.ErrorList {
	if v.rules == nil || blocking(errs) {
		return nil
	}

	var before any // an old object that is not there must be nil, and not a nil map
	if old != nil {
		before = old
	}

	found, _ := v.rules.Validate(ctx, nil, v.structural, object, before, celconfig.RuntimeCELCostBudget, options...)

	return found
}

func blocking(errs field.ErrorList) bool {
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

// dropDefaults removes what is there only because the API server filled it in, or could be.
func (v *validator) dropDefaults(object map[string]any) { dropDefaults(object, v.structural) }

func dropDefaults(x any, s *structuralschema.Structural) {
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
				dropDefaults(value, &property)
			case s.AdditionalProperties != nil:
				dropDefaults(value, s.AdditionalProperties.Structural)
			}
		}
	case []any:
		for _, item := range x {
			dropDefaults(item, s.Items)
		}
	}
}
