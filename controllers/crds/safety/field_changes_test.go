package safety_test

import (
	"github.com/capstan-project/capstan/controllers/crds/safety"
)

// change is a change of the field spec.<name>, in YAML, with values that it breaks and does not break.
type change struct {
	name     string
	old, new string
	// rule and path of the finding. The path is relative to the field. An empty rule means that there
	// is no finding.
	rule safety.Rule
	path string
	// level is that of the rule, without objects.
	level safety.Level
	// broken is a value of the field that the change breaks; empty if there is none. at is the path of
	// what breaks, relative to the field.
	broken, at string
	// drops means that the API server does not reject the broken value, but drops it.
	drops bool
	// fine is a value of the field that the change does not break; empty if there is none.
	fine string
}

// changes are changes of one field. Those of the CRD as a whole are in TestCheckDefinition.
var changes = []change{
	{
		name:   "removed",
		old:    "{type: object, properties: {a: {type: string}, b: {type: string}}}",
		new:    "{type: object, properties: {b: {type: string}}}",
		rule:   safety.RuleFieldRemoved,
		path:   ".a",
		level:  safety.Error,
		broken: "{a: x}",
		at:     ".a",
		drops:  true,
		fine:   "{b: x}",
	},
	{
		name:   "removedDefault",
		old:    "{type: object, properties: {a: {type: string, default: x}, b: {type: string}}}",
		new:    "{type: object, properties: {b: {type: string}}}",
		rule:   safety.RuleFieldRemoved,
		path:   ".a",
		level:  safety.Error,
		broken: "{a: z}",
		at:     ".a",
		drops:  true,
		fine:   "{a: x}",
	},
	{
		name:   "removedInList",
		old:    "{type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}",
		new:    "{type: array, items: {type: object, properties: {b: {type: string}}}}",
		rule:   safety.RuleFieldRemoved,
		path:   "[*].a",
		level:  safety.Error,
		broken: "[{b: x}, {a: x}]",
		at:     "[1].a",
		drops:  true,
		fine:   "[{b: x}]",
	},
	{
		name:   "keysRemoved",
		old:    "{type: object, additionalProperties: {type: string}}",
		new:    "{type: object}",
		rule:   safety.RuleFieldRemoved,
		path:   "[*]",
		level:  safety.Error,
		broken: "{a: x}",
		at:     ".a",
		drops:  true,
		fine:   "{}",
	},
	{name: "type", old: "{type: string}", new: "{type: integer}",
		rule: safety.RuleTypeChanged, level: safety.Error, broken: "x"},
	{name: "typeWidened", old: "{type: string}", new: "{x-kubernetes-int-or-string: true}",
		rule: safety.RuleTypeChanged, level: safety.Error, fine: "x"},
	{
		name:   "typeToObject",
		old:    "{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}",
		new:    "{type: object, properties: {a: {type: string}}}",
		rule:   safety.RuleTypeChanged,
		path:   ".a",
		level:  safety.Error,
		broken: "{a: {b: x}}",
		at:     ".a.b",
		fine:   "{}",
	},
	{
		name:   "required",
		old:    "{type: object, properties: {a: {type: string}}}",
		new:    "{type: object, properties: {a: {type: string}}, required: [a]}",
		rule:   safety.RuleFieldRequired,
		path:   ".a",
		level:  safety.Warning,
		broken: "{}",
		at:     ".a",
		fine:   "{a: x}",
	},
	{
		name: "requiredWithDefault",
		old:  "{type: object, properties: {a: {type: string, default: x}}}",
		new:  "{type: object, properties: {a: {type: string, default: x}}, required: [a]}",
		fine: "{}",
	},
	{
		name:   "unknownFields",
		old:    "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}",
		new:    "{type: object, properties: {a: {type: string}}}",
		rule:   safety.RuleUnknownFieldsPruned,
		level:  safety.Warning,
		broken: "{b: x}",
		at:     ".b",
		drops:  true,
		fine:   "{a: x}",
	},
	{
		name:   "described",
		old:    "{type: object, x-kubernetes-preserve-unknown-fields: true}",
		new:    "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: integer}}}",
		rule:   safety.RuleFieldSchemaAdded,
		path:   ".a",
		level:  safety.Warning,
		broken: "{a: x}",
		at:     ".a",
		fine:   "{a: 1}",
	},
	{name: "enum", old: "{type: string, enum: [a, b]}", new: "{type: string, enum: [b]}",
		rule: safety.RuleEnumRestricted, level: safety.Warning, broken: "a", fine: "b"},
	{name: "enumAdded", old: "{type: string}", new: "{type: string, enum: [b]}",
		rule: safety.RuleEnumRestricted, level: safety.Warning, broken: "a", fine: "b"},
	{name: "enumLonger", old: "{type: string, enum: [a]}", new: "{type: string, enum: [a, b]}", fine: "a"},
	{name: "enumDropped", old: "{type: string, enum: [a]}", new: "{type: string}", fine: "a"},
	{name: "minimum", old: "{type: integer, minimum: 1}", new: "{type: integer, minimum: 5}",
		rule: safety.RuleMinimumRaised, level: safety.Warning, broken: "4", fine: "5"},
	{name: "minimumLowered", old: "{type: integer, minimum: 5}", new: "{type: integer, minimum: 1}", fine: "5"},
	{name: "maximum", old: "{type: integer}", new: "{type: integer, maximum: 5}",
		rule: safety.RuleMaximumLowered, level: safety.Warning, broken: "6", fine: "5"},
	{name: "exclusive", old: "{type: integer, maximum: 5}", new: "{type: integer, maximum: 5, exclusiveMaximum: true}",
		rule: safety.RuleExclusiveBoundAdded, level: safety.Warning, broken: "5", fine: "4"},
	{name: "multipleOf", old: "{type: integer}", new: "{type: integer, multipleOf: 2}",
		rule: safety.RuleMultipleOfChanged, level: safety.Warning, broken: "3", fine: "4"},
	{name: "minLength", old: "{type: string}", new: "{type: string, minLength: 2}",
		rule: safety.RuleMinLengthRaised, level: safety.Warning, broken: "a", fine: "aa"},
	{name: "maxLength", old: "{type: string, maxLength: 9}", new: "{type: string, maxLength: 2}",
		rule: safety.RuleMaxLengthLowered, level: safety.Warning, broken: "aaa", fine: "aa"},
	{
		name:   "maxLengthInMap",
		old:    "{type: object, additionalProperties: {type: string}}",
		new:    "{type: object, additionalProperties: {type: string, maxLength: 2}}",
		rule:   safety.RuleMaxLengthLowered,
		path:   "[*]",
		level:  safety.Warning,
		broken: "{a.b/c: aaa}",
		at:     ".a.b/c",
		fine:   "{a.b/c: aa}",
	},
	{name: "pattern", old: "{type: string}", new: "{type: string, pattern: '^a+$'}",
		rule: safety.RulePatternChanged, level: safety.Warning, broken: "b", fine: "a"},
	{name: "format", old: "{type: string}", new: "{type: string, format: ipv4}",
		rule: safety.RuleFormatChanged, level: safety.Warning, broken: "b", fine: "10.0.0.1"},
	{
		name:   "minItems",
		old:    "{type: array, items: {type: string}}",
		new:    "{type: array, items: {type: string}, minItems: 1}",
		rule:   safety.RuleMinItemsRaised,
		level:  safety.Warning,
		broken: "[]",
		fine:   "[a]",
	},
	{
		name:   "maxItems",
		old:    "{type: array, items: {type: string}}",
		new:    "{type: array, items: {type: string}, maxItems: 1}",
		rule:   safety.RuleMaxItemsLowered,
		level:  safety.Warning,
		broken: "[a, b]",
		fine:   "[a]",
	},
	{
		name:   "minProperties",
		old:    "{type: object, additionalProperties: {type: string}}",
		new:    "{type: object, additionalProperties: {type: string}, minProperties: 1}",
		rule:   safety.RuleMinPropertiesRaised,
		level:  safety.Warning,
		broken: "{}",
		fine:   "{a: x}",
	},
	{
		name:   "maxProperties",
		old:    "{type: object, additionalProperties: {type: string}}",
		new:    "{type: object, additionalProperties: {type: string}, maxProperties: 1}",
		rule:   safety.RuleMaxPropertiesLowered,
		level:  safety.Warning,
		broken: "{a: x, b: x}",
		fine:   "{a: x}",
	},
	{name: "nullable", old: "{type: string, nullable: true}", new: "{type: string}",
		rule: safety.RuleNullableRemoved, level: safety.Warning, fine: "null"},
	{
		name:   "listSet",
		old:    "{type: array, items: {type: string}}",
		new:    "{type: array, items: {type: string}, x-kubernetes-list-type: set}",
		rule:   safety.RuleListTypeChanged,
		level:  safety.Warning,
		broken: "[a, a]",
		at:     "[1]",
		fine:   "[a, b]",
	},
	{
		name: "listMap",
		old:  "{type: array, items: {type: object, properties: {a: {type: string}}, required: [a]}}",
		new: "{type: array, items: {type: object, properties: {a: {type: string}}, required: [a]}, " +
			"x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a]}",
		rule:   safety.RuleListTypeChanged,
		level:  safety.Warning,
		broken: "[{a: x}, {a: x}]",
		at:     "[1]",
		fine:   "[{a: x}, {a: z}]",
	},
	{
		name:  "mapAtomic",
		old:   "{type: object, additionalProperties: {type: string}}",
		new:   "{type: object, additionalProperties: {type: string}, x-kubernetes-map-type: atomic}",
		rule:  safety.RuleMapTypeChanged,
		level: safety.Warning,
		fine:  "{a: x}",
	},
	{
		name:   "embedded",
		old:    "{type: object, x-kubernetes-preserve-unknown-fields: true}",
		new:    "{type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}",
		rule:   safety.RuleEmbeddedResourceRequired,
		level:  safety.Warning,
		broken: "{a: x}",
		at:     ".apiVersion",
		fine:   "{apiVersion: v1, kind: ConfigMap}",
	},
	{
		name: "validation",
		old:  "{type: object, properties: {a: {type: integer}}}",
		new: "{type: object, properties: {a: {type: integer}}, " +
			"x-kubernetes-validations: [{rule: '!has(self.a) || self.a > 3', message: a is more than three}]}",
		rule:   safety.RuleValidationRuleAdded,
		level:  safety.Warning,
		broken: "{a: 3}",
		fine:   "{a: 4}",
	},
	{
		name: "validationElsewhere",
		old:  "{type: object, properties: {a: {type: integer}}}",
		new: "{type: object, properties: {a: {type: integer}}, " +
			"x-kubernetes-validations: [{rule: '!has(self.a) || self.a > 3', fieldPath: .a}]}",
		rule:   safety.RuleValidationRuleAdded,
		level:  safety.Warning,
		broken: "{a: 3}",
		at:     ".a",
		fine:   "{a: 4}",
	},
	{
		name: "composition",
		old:  "{type: object, properties: {a: {type: string}, b: {type: string}}}",
		new: "{type: object, properties: {a: {type: string}, b: {type: string}}, " +
			"oneOf: [{required: [a]}, {required: [b]}]}",
		rule:   safety.RuleCompositionChanged,
		level:  safety.Warning,
		broken: "{a: x, b: x}",
		fine:   "{a: x}",
	},
	{name: "default", old: "{type: string, default: a}", new: "{type: string, default: b}",
		rule: safety.RuleDefaultChanged, level: safety.Warning, fine: "a"},
	{name: "describedOnly", old: "{type: string, description: old}", new: "{type: string, description: new}", fine: "a"},
}

func (c change) field() string { return "spec." + c.name + c.path }
