package safety

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

// comparator is one of crdify's. It resets what it compares, in both schemas.
type comparator interface {
	validations.Comparator[props]
	validations.Validation
}

// comparators judge the keywords that they are named after, as the rules are.
var comparators = func() []comparator {
	all := []comparator{
		&property.Default{}, &property.Enum{EnumConfig: property.EnumConfig{AdditionPolicy: property.AdditionPolicyAllow}},
		&property.Minimum{}, &property.MinLength{}, &property.MinItems{}, &property.MinProperties{},
		&property.Maximum{}, &property.MaxLength{}, &property.MaxItems{}, &property.MaxProperties{},
	}
	for _, c := range all {
		c.SetEnforcement(config.EnforcementPolicyError)
	}

	return all
}()

// maxQuoted is how much of a definition's own text, such as a default, a message quotes.
const maxQuoted = 120

// attributes compares what two schemas of one field say of the field itself, and not of its
// children.
func (w *walker) attributes(path string, old, new *props) {
	a, b := bare(*old), bare(*new)
	if equality.Semantic.DeepEqual(a, b) {
		return
	}

	if len(b.Enum) == 0 {
		a.Enum = nil // crdify takes a constraint that goes for one that all values are removed from
	}

	for _, c := range comparators {
		for _, text := range c.Compare(&a, &b).Errors {
			w.add(Rule(c.Name()), path, "%s: %s", c.Name(), quoted(strings.ReplaceAll(text, " : ", ": ")))
		}
	}

	w.strings(path, &a, &b)
	w.switches(path, &a, &b)
	w.rules(path, &a, &b)

	if !equality.Semantic.DeepEqual(a, b) {
		w.add(RuleOther, path, "the schema changes in a way that has no rule")
	}
}

// bare is a schema without its children, and without what is only for people.
func bare(s props) props {
	s.Properties, s.Items, s.AdditionalProperties, s.Required = nil, nil, nil, nil
	s.Description, s.Title, s.Example, s.ExternalDocs, s.ID, s.Schema = "", "", nil, nil, "", ""

	return s
}

// strings compares keywords whose every new value is a new constraint. Like its siblings it resets
// what it compared.
func (w *walker) strings(path string, a, b *props) {
	if b.Pattern != "" && a.Pattern != b.Pattern {
		w.add(RulePattern, path, "it must match the pattern %s", quoted(b.Pattern))
	}

	if b.Format != "" && a.Format != b.Format {
		w.add(RuleFormat, path, "it must have the format %s", b.Format)
	}

	if b.MultipleOf != nil && !equality.Semantic.DeepEqual(a.MultipleOf, b.MultipleOf) {
		w.add(RuleMultipleOf, path, "it must be a multiple of %v", *b.MultipleOf)
	}

	if !equality.Semantic.DeepEqual(a.XListType, b.XListType) || !slices.Equal(a.XListMapKeys, b.XListMapKeys) {
		w.add(RuleListType, path, "the list changes from %s to %s", list(a), list(b))
	}

	if !equality.Semantic.DeepEqual(a.XMapType, b.XMapType) {
		w.add(RuleMapType, path, "the map changes from %s to %s", or(a.XMapType, "granular"), or(b.XMapType, "granular"))
	}

	for _, s := range []*props{a, b} {
		s.Pattern, s.Format, s.MultipleOf, s.XListType, s.XListMapKeys, s.XMapType = "", "", nil, nil, nil, nil
	}
}

// switches compares what is either on or off.
func (w *walker) switches(path string, a, b *props) {
	for _, s := range []struct {
		rule    Rule
		worse   bool
		message string
	}{
		{RuleNullable, a.Nullable && !b.Nullable, "it cannot be null any more"},
		{RuleExclusive, !a.ExclusiveMinimum && b.ExclusiveMinimum, "it must be larger than the minimum"},
		{RuleExclusive, !a.ExclusiveMaximum && b.ExclusiveMaximum, "it must be smaller than the maximum"},
		{RuleEmbeddedResource, !a.XEmbeddedResource && b.XEmbeddedResource, "it must be a whole object with apiVersion and kind"},
		{RuleUnknownFields, preserves(a) && !preserves(b), "fields that the schema does not have are not kept any more"},
	} {
		if s.worse {
			w.add(s.rule, path, "%s", s.message)
		}
	}

	for _, s := range []*props{a, b} {
		s.Nullable, s.ExclusiveMinimum, s.ExclusiveMaximum = false, false, false
		s.XEmbeddedResource, s.XPreserveUnknownFields = false, nil
	}
}

// rules compares CEL rules and logic.
func (w *walker) rules(path string, a, b *props) {
	for _, rule := range b.XValidations {
		if !slices.ContainsFunc(a.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule.Rule }) {
			text := rule.Message
			if text == "" {
				text = rule.Rule
			}

			w.add(RuleValidation, path, "there is a new rule: %s", quoted(text))
		}
	}

	logic := func(s *props) props { return props{AllOf: s.AllOf, AnyOf: s.AnyOf, OneOf: s.OneOf, Not: s.Not} }

	before, after := logic(a), logic(b)
	if !equality.Semantic.DeepEqual(after, props{}) && !equality.Semantic.DeepEqual(before, after) {
		w.add(RuleLogic, path, "what it must be (allOf, anyOf, oneOf, not) changes")
	}

	for _, s := range []*props{a, b} {
		s.XValidations, s.AllOf, s.AnyOf, s.OneOf, s.Not = nil, nil, nil, nil, nil
	}
}

// list describes a list's type.
func list(s *props) string {
	text := or(s.XListType, "atomic")
	if len(s.XListMapKeys) > 0 {
		text += " of " + strings.Join(s.XListMapKeys, ", ")
	}

	return text
}

func or(s *string, otherwise string) string {
	if s == nil {
		return otherwise
	}

	return *s
}

// quoted is a definition's own text in one line of bounded length.
func quoted(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxQuoted {
		return text
	}

	return strings.ToValidUTF8(text[:maxQuoted], "") + "…"
}
