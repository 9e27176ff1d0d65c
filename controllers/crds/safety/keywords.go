package safety

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

// comparator is one of crdify's. It compares a keyword and then clears it in both schemas.
type comparator interface {
	validations.Comparator[props]
	validations.Validation
}

// constraint is a keyword that crdify compares.
type constraint struct {
	rule       Rule
	comparator comparator
}

// constraints are all keywords that crdify compares.
var constraints = newConstraints()

func newConstraints() []constraint {
	enum := &property.Enum{EnumConfig: property.EnumConfig{AdditionPolicy: property.AdditionPolicyAllow}}

	all := []constraint{
		{RuleDefaultChanged, &property.Default{}},
		{RuleEnumRestricted, enum},
		{RuleMinimumRaised, &property.Minimum{}},
		{RuleMinLengthRaised, &property.MinLength{}},
		{RuleMinItemsRaised, &property.MinItems{}},
		{RuleMinPropertiesRaised, &property.MinProperties{}},
		{RuleMaximumLowered, &property.Maximum{}},
		{RuleMaxLengthLowered, &property.MaxLength{}},
		{RuleMaxItemsLowered, &property.MaxItems{}},
		{RuleMaxPropertiesLowered, &property.MaxProperties{}},
	}
	for _, c := range all {
		c.comparator.SetEnforcement(config.EnforcementPolicyError)
	}

	return all
}

// compareKeywords compares what two schemas say about a field itself, not about its children. Each
// step clears the keywords that it has compared, so that what remains has no rule.
func (c *schemaComparer) compareKeywords(path string, old, new *props) {
	before := withoutChildren(*old)
	after := withoutChildren(*new)

	if equality.Semantic.DeepEqual(before, after) {
		return
	}

	c.compareConstraints(path, &before, &after)
	c.compareFormats(path, &before, &after)
	c.compareLists(path, &before, &after)
	c.compareFlags(path, &before, &after)
	c.compareValidationRules(path, &before, &after)
	c.compareComposition(path, &before, &after)

	if !equality.Semantic.DeepEqual(before, after) {
		c.add(path, RuleSchemaChanged, "the schema changes in a way that no rule covers")
	}
}

// withoutChildren returns a schema without its children and its documentation.
func withoutChildren(s props) props {
	s.Properties, s.Items, s.AdditionalProperties, s.Required = nil, nil, nil, nil
	s.Description, s.Title, s.Example, s.ExternalDocs, s.ID, s.Schema = "", "", nil, nil, "", ""

	return s
}

// compareConstraints compares the default, the enum and all limits.
func (c *schemaComparer) compareConstraints(path string, old, new *props) {
	if len(new.Enum) == 0 {
		old.Enum = nil // crdify would report a removed enum as one whose values are all removed
	}

	for _, k := range constraints {
		for _, text := range k.comparator.Compare(old, new).Errors {
			c.add(path, k.rule, "%s: %s", k.comparator.Name(), quoted(strings.ReplaceAll(text, " : ", ": ")))
		}
	}
}

// compareFormats compares keywords whose every new value is a new constraint.
func (c *schemaComparer) compareFormats(path string, old, new *props) {
	if new.Pattern != "" && old.Pattern != new.Pattern {
		c.add(path, RulePatternChanged, "the value must match the pattern %s", quoted(new.Pattern))
	}

	if new.Format != "" && old.Format != new.Format {
		c.add(path, RuleFormatChanged, "the value must have the format %s", new.Format)
	}

	if new.MultipleOf != nil && !ptr.Equal(old.MultipleOf, new.MultipleOf) {
		c.add(path, RuleMultipleOfChanged, "the value must be a multiple of %v", *new.MultipleOf)
	}

	for _, s := range []*props{old, new} {
		s.Pattern, s.Format, s.MultipleOf = "", "", nil
	}
}

// compareLists compares how lists and maps are merged.
func (c *schemaComparer) compareLists(path string, old, new *props) {
	if listType(old) != listType(new) {
		c.add(path, RuleListTypeChanged, "the list type changes from %s to %s", listType(old), listType(new))
	}

	if mapType(old) != mapType(new) {
		c.add(path, RuleMapTypeChanged, "the map type changes from %s to %s", mapType(old), mapType(new))
	}

	for _, s := range []*props{old, new} {
		s.XListType, s.XListMapKeys, s.XMapType = nil, nil, nil
	}
}

// compareFlags compares keywords that are either on or off.
func (c *schemaComparer) compareFlags(path string, old, new *props) {
	if old.Nullable && !new.Nullable {
		c.add(path, RuleNullableRemoved, "the value can no longer be null")
	}

	if !old.ExclusiveMinimum && new.ExclusiveMinimum {
		c.add(path, RuleExclusiveBoundAdded, "the value must be greater than the minimum")
	}

	if !old.ExclusiveMaximum && new.ExclusiveMaximum {
		c.add(path, RuleExclusiveBoundAdded, "the value must be less than the maximum")
	}

	if !old.XEmbeddedResource && new.XEmbeddedResource {
		c.add(path, RuleEmbeddedResourceRequired, "the value must be a complete object with apiVersion and kind")
	}

	if preservesUnknownFields(old) && !preservesUnknownFields(new) {
		c.add(path, RuleUnknownFieldsPruned, messageUnknownFieldsPruned)
	}

	for _, s := range []*props{old, new} {
		s.Nullable, s.ExclusiveMinimum, s.ExclusiveMaximum = false, false, false
		s.XEmbeddedResource, s.XPreserveUnknownFields = false, nil
	}
}

// compareValidationRules finds new CEL rules.
func (c *schemaComparer) compareValidationRules(path string, old, new *props) {
	for _, rule := range new.XValidations {
		known := func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule.Rule }
		if slices.ContainsFunc(old.XValidations, known) {
			continue
		}

		c.add(path, RuleValidationRuleAdded, "%s", newRulePrefix+quoted(ruleText(rule)))
	}

	old.XValidations, new.XValidations = nil, nil
}

// newRulePrefix begins the message about a new CEL rule, which ends with the rule's text.
const newRulePrefix = "there is a new validation rule: "

// ruleText returns the message of a CEL rule, or the rule itself if it has none.
func ruleText(rule apiextensionsv1.ValidationRule) string {
	if rule.Message != "" {
		return rule.Message
	}

	return rule.Rule
}

// compareComposition compares allOf, anyOf, oneOf and not.
func (c *schemaComparer) compareComposition(path string, old, new *props) {
	before := props{AllOf: old.AllOf, AnyOf: old.AnyOf, OneOf: old.OneOf, Not: old.Not}
	after := props{AllOf: new.AllOf, AnyOf: new.AnyOf, OneOf: new.OneOf, Not: new.Not}

	if !equality.Semantic.DeepEqual(after, props{}) && !equality.Semantic.DeepEqual(before, after) {
		c.add(path, RuleCompositionChanged, "the constraints in allOf, anyOf, oneOf or not change")
	}

	for _, s := range []*props{old, new} {
		s.AllOf, s.AnyOf, s.OneOf, s.Not = nil, nil, nil, nil
	}
}

// listType returns the type of a list with its keys.
func listType(s *props) string {
	text := ptr.Deref(s.XListType, "atomic")
	if len(s.XListMapKeys) > 0 {
		text += " with the keys " + strings.Join(s.XListMapKeys, ", ")
	}

	return text
}

func mapType(s *props) string { return ptr.Deref(s.XMapType, "granular") }
