package trial_test

// change is a change of the field spec.<name>, in YAML, with values that it breaks and does not break.
type change struct {
	name     string
	old, new string
	// path of the finding, relative to the field.
	path string
	// broken is a value of the field that the change breaks; empty if there is none.
	broken string
	// drops means that the API server does not reject the broken value, but drops it.
	drops bool
	// fine is a value of the field that the change does not break; empty if there is none.
	fine string
}

// changes are changes of one field. Those of the CRD as a whole are in TestDefinitions.
var changes = []change{
	{
		name:   "removed",
		old:    "{type: object, properties: {a: {type: string}, b: {type: string}}}",
		new:    "{type: object, properties: {b: {type: string}}}",
		path:   ".a",
		broken: "{a: x}",
		drops:  true,
		fine:   "{b: x}",
	},
	{
		name:   "removedDefault",
		old:    "{type: object, properties: {a: {type: string, default: x}, b: {type: string}}}",
		new:    "{type: object, properties: {b: {type: string}}}",
		path:   ".a",
		broken: "{a: z}",
		drops:  true,
		fine:   "{a: x}",
	},
	{
		name:   "removedInList",
		old:    "{type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}",
		new:    "{type: array, items: {type: object, properties: {b: {type: string}}}}",
		path:   "[*].a",
		broken: "[{b: x}, {a: x}]",
		drops:  true,
		fine:   "[{b: x}]",
	},
	{
		name:   "keysRemoved",
		old:    "{type: object, additionalProperties: {type: string}}",
		new:    "{type: object}",
		path:   "[*]",
		broken: "{a: x}",
		drops:  true,
		fine:   "{}",
	},
	{name: "type", old: "{type: string}", new: "{type: integer}", broken: "x"},
	{name: "typeWidened", old: "{type: string}", new: "{x-kubernetes-int-or-string: true}", fine: "x"},
	{
		name:   "typeToObject",
		old:    "{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}",
		new:    "{type: object, properties: {a: {type: string}}}",
		path:   ".a",
		broken: "{a: {}}",
		fine:   "{}",
	},
	{
		name:   "required",
		old:    "{type: object, properties: {a: {type: string}}}",
		new:    "{type: object, properties: {a: {type: string}}, required: [a]}",
		path:   ".a",
		broken: "{}",
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
		broken: "{b: x}",
		drops:  true,
		fine:   "{a: x}",
	},
	{
		name:   "described",
		old:    "{type: object, x-kubernetes-preserve-unknown-fields: true}",
		new:    "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: integer}}}",
		path:   ".a",
		broken: "{a: x}",
		fine:   "{a: 1}",
	},
	{name: "enum", old: "{type: string, enum: [a, b]}", new: "{type: string, enum: [b]}", broken: "a", fine: "b"},
	{name: "enumAdded", old: "{type: string}", new: "{type: string, enum: [b]}", broken: "a", fine: "b"},
	{name: "enumLonger", old: "{type: string, enum: [a]}", new: "{type: string, enum: [a, b]}", fine: "a"},
	{name: "enumDropped", old: "{type: string, enum: [a]}", new: "{type: string}", fine: "a"},
	{name: "minimum", old: "{type: integer, minimum: 1}", new: "{type: integer, minimum: 5}", broken: "4", fine: "5"},
	{name: "minimumLowered", old: "{type: integer, minimum: 5}", new: "{type: integer, minimum: 1}", fine: "5"},
	{name: "maximum", old: "{type: integer}", new: "{type: integer, maximum: 5}", broken: "6", fine: "5"},
	{name: "exclusive", old: "{type: integer, maximum: 5}", new: "{type: integer, maximum: 5, exclusiveMaximum: true}",
		broken: "5", fine: "4"},
	{name: "multipleOf", old: "{type: integer}", new: "{type: integer, multipleOf: 2}", broken: "3", fine: "4"},
	{name: "minLength", old: "{type: string}", new: "{type: string, minLength: 2}", broken: "a", fine: "aa"},
	{name: "maxLength", old: "{type: string, maxLength: 9}", new: "{type: string, maxLength: 2}",
		broken: "aaa", fine: "aa"},
	{
		name:   "maxLengthInMap",
		old:    "{type: object, additionalProperties: {type: string}}",
		new:    "{type: object, additionalProperties: {type: string, maxLength: 2}}",
		path:   "[*]",
		broken: "{a.b/c: aaa}",
		fine:   "{a.b/c: aa}",
	},
	{name: "pattern", old: "{type: string}", new: "{type: string, pattern: '^a+$'}", broken: "b", fine: "a"},
	{name: "format", old: "{type: string}", new: "{type: string, format: ipv4}", broken: "b", fine: "10.0.0.1"},
	{
		name:   "minItems",
		old:    "{type: array, items: {type: string}}",
		new:    "{type: array, items: {type: string}, minItems: 1}",
		broken: "[]",
		fine:   "[a]",
	},
	{
		name:   "maxItems",
		old:    "{type: array, items: {type: string}}",
		new:    "{type: array, items: {type: string}, maxItems: 1}",
		broken: "[a, b]",
		fine:   "[a]",
	},
	{
		name:   "minProperties",
		old:    "{type: object, additionalProperties: {type: string}}",
		new:    "{type: object, additionalProperties: {type: string}, minProperties: 1}",
		broken: "{}",
		fine:   "{a: x}",
	},
	{
		name:   "maxProperties",
		old:    "{type: object, additionalProperties: {type: string}}",
		new:    "{type: object, additionalProperties: {type: string}, maxProperties: 1}",
		broken: "{a: x, b: x}",
		fine:   "{a: x}",
	},
	{name: "nullable", old: "{type: string, nullable: true}", new: "{type: string}", fine: "null"},
	{
		name:   "listSet",
		path:   "[*]",
		old:    "{type: array, items: {type: string}}",
		new:    "{type: array, items: {type: string}, x-kubernetes-list-type: set}",
		broken: "[a, a]",
		fine:   "[a, b]",
	},
	{
		name: "listMap",
		path: "[*]",
		old:  "{type: array, items: {type: object, properties: {a: {type: string}}, required: [a]}}",
		new: "{type: array, items: {type: object, properties: {a: {type: string}}, required: [a]}, " +
			"x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a]}",
		broken: "[{a: x}, {a: x}]",
		fine:   "[{a: x}, {a: z}]",
	},
	{
		name: "mapAtomic",
		old:  "{type: object, additionalProperties: {type: string}}",
		new:  "{type: object, additionalProperties: {type: string}, x-kubernetes-map-type: atomic}",
		fine: "{a: x}",
	},
	{
		name:   "embedded",
		old:    "{type: object, x-kubernetes-preserve-unknown-fields: true}",
		new:    "{type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}",
		broken: "{a: x}",
		fine:   "{apiVersion: v1, kind: ConfigMap}",
	},
	{
		name: "validation",
		old:  "{type: object, properties: {a: {type: integer}}}",
		new: "{type: object, properties: {a: {type: integer}}, " +
			"x-kubernetes-validations: [{rule: '!has(self.a) || self.a > 3', message: a is more than three}]}",
		broken: "{a: 3}",
		fine:   "{a: 4}",
	},
	{
		name: "validationElsewhere",
		path: ".a",
		old:  "{type: object, properties: {a: {type: integer}}}",
		new: "{type: object, properties: {a: {type: integer}}, " +
			"x-kubernetes-validations: [{rule: '!has(self.a) || self.a > 3', fieldPath: .a}]}",
		broken: "{a: 3}",
		fine:   "{a: 4}",
	},
	{
		name: "composition",
		old:  "{type: object, properties: {a: {type: string}, b: {type: string}}}",
		new: "{type: object, properties: {a: {type: string}, b: {type: string}}, " +
			"oneOf: [{required: [a]}, {required: [b]}]}",
		broken: "{a: x, b: x}",
		fine:   "{a: x}",
	},
	{name: "default", old: "{type: string, default: a}", new: "{type: string, default: b}", fine: "a"},
	{name: "describedOnly", old: "{type: string, description: old}", new: "{type: string, description: new}", fine: "a"},
}

func (c change) field() string { return "spec." + c.name + c.path }
