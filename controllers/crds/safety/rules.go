package safety

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rule names the kind of a change. Those about one field are named after the keyword of OpenAPI or
// of its extensions.
type Rule string

// Rules about a CRD as a whole. The API server refuses the first four itself, whatever objects
// there are.
const (
	RuleScope                Rule = "scope"
	RuleGroup                Rule = "group"
	RuleKind                 Rule = "kind"
	RuleStoredVersionRemoved Rule = "storedVersionRemoved"
	RuleServedVersionRemoved Rule = "servedVersionRemoved"
	RuleConversionRemoved    Rule = "conversionRemoved"
	RuleConversionUnknown    Rule = "conversionUnknown"
	RuleStorageVersionMoved  Rule = "storageVersionMoved"
	RuleVersionDeprecated    Rule = "versionDeprecated"
	RuleUnchecked            Rule = "unchecked"
	RuleMissing              Rule = "missing"
	RuleServedVersionMissing Rule = "servedVersionMissing"
)

// Rules about a version.
const (
	RuleStatusRemoved          Rule = "statusSubresourceRemoved"
	RuleScaleRemoved           Rule = "scaleSubresourceRemoved"
	RuleSelectableFieldRemoved Rule = "selectableFieldRemoved"
	RuleInvalidObject          Rule = "invalidObject"
)

// Rules about a field.
const (
	RuleFieldRemoved         Rule = "fieldRemoved"
	RuleType                 Rule = "type"
	RuleRequired             Rule = "required"
	RuleUnknownFields        Rule = "preserveUnknownFields"
	RuleFieldDescribed       Rule = "fieldDescribed"
	RuleEnum                 Rule = "enum"
	RuleDefault              Rule = "default"
	RulePattern              Rule = "pattern"
	RuleFormat               Rule = "format"
	RuleNullable             Rule = "nullable"
	RuleMultipleOf           Rule = "multipleOf"
	RuleExclusive            Rule = "exclusive"
	RuleMinimum              Rule = "minimum"
	RuleMaximum              Rule = "maximum"
	RuleMinLength            Rule = "minLength"
	RuleMaxLength            Rule = "maxLength"
	RuleMinItems             Rule = "minItems"
	RuleMaxItems             Rule = "maxItems"
	RuleMinProperties        Rule = "minProperties"
	RuleMaxProperties        Rule = "maxProperties"
	RuleListType             Rule = "listType"
	RuleMapType              Rule = "mapType"
	RuleEmbeddedResource     Rule = "embeddedResource"
	RuleValidation           Rule = "validation"
	RuleLogic                Rule = "logic"
	RuleOther                Rule = "other"
	RuleFieldLostByMigration Rule = "fieldLostByMigration"
)

// traits are what there is to know of a rule. A rule that has none is a Warning with the usual
// remedy.
type traits struct {
	level  Level
	remedy string
	// final means that objects do not matter.
	final bool
	// loses means that objects lose data by it.
	loses bool
	// errors are the types of the API server's errors about a field that breaks the rule, and
	// detail a part of their text.
	errors []field.ErrorType
	detail string
	// anyError means that errors of any type, about the field or a part of it, may come from the
	// rule.
	anyError bool
}

const (
	remedyObjects = "change the objects that it breaks before the upgrade"
	remedyNewName = "the API server does not allow it: the provider must publish a CRD of another name, or go back"
	remedyData    = "move what the field holds elsewhere, or unset it, before the upgrade"
	remedyMigrate = "migrate the objects to the storage version and trim status.storedVersions before the upgrade"
	remedySatisfy = "use a version of the provider that fits the cluster's CRD, or have the CRD changed by its owner"
	remedyClients = "move the clients to another version and rewrite the objects' metadata.managedFields before the upgrade"
)

var invalid = []field.ErrorType{field.ErrorTypeInvalid}

var ruleTraits = map[Rule]traits{
	RuleScope:                {level: Stop, final: true, remedy: remedyNewName},
	RuleGroup:                {level: Stop, final: true, remedy: remedyNewName},
	RuleKind:                 {level: Stop, final: true, remedy: remedyNewName},
	RuleStoredVersionRemoved: {level: Stop, final: true, remedy: remedyMigrate},
	RuleServedVersionRemoved: {level: Stop, remedy: remedyClients},
	RuleConversionRemoved: {
		level:  Warning,
		remedy: "check that all versions have the same fields, or keep the webhook",
	},
	RuleConversionUnknown:   {level: Stop, final: true, remedy: "stay with a version that knows the storage version"},
	RuleStorageVersionMoved: {level: Info, final: true},
	RuleVersionDeprecated:   {level: Info, final: true, remedy: "move its clients to another version in time"},
	RuleUnchecked: {
		level:  Warning,
		final:  true,
		remedy: "see that the provider's conversion webhook answers, or judge the other findings yourself",
	},
	RuleMissing:                {level: Stop, final: true, remedy: "ask its owner to install it"},
	RuleServedVersionMissing:   {level: Stop, final: true, remedy: remedySatisfy},
	RuleStatusRemoved:          {remedy: "managers that write the status subresource fail: upgrade them with the CRD"},
	RuleScaleRemoved:           {remedy: "autoscalers and kubectl scale fail on these objects: stop them first"},
	RuleSelectableFieldRemoved: {remedy: "clients that select by this field fail: change them first"},
	RuleInvalidObject:          {loses: true, anyError: true, remedy: remedyObjects},
	RuleFieldRemoved:           {level: Stop, loses: true, remedy: remedyData},
	RuleFieldLostByMigration:   {level: Stop, loses: true, remedy: remedyData},
	RuleUnknownFields:          {loses: true, remedy: remedyData},
	RuleType: {
		level:  Stop,
		loses:  true,
		remedy: remedyObjects,
		errors: []field.ErrorType{field.ErrorTypeTypeInvalid},
	},
	RuleRequired:      {remedy: remedyObjects, errors: []field.ErrorType{field.ErrorTypeRequired}},
	RuleEnum:          {remedy: remedyObjects, errors: []field.ErrorType{field.ErrorTypeNotSupported}},
	RuleMaxLength:     {remedy: remedyObjects, errors: []field.ErrorType{field.ErrorTypeTooLong}},
	RuleMaxItems:      {remedy: remedyObjects, errors: []field.ErrorType{field.ErrorTypeTooMany}},
	RuleMaxProperties: {remedy: remedyObjects, errors: []field.ErrorType{field.ErrorTypeTooMany}},
	RuleNullable:      {remedy: remedyObjects, errors: []field.ErrorType{field.ErrorTypeTypeInvalid}},
	RuleListType: {
		remedy: remedyObjects,
		errors: []field.ErrorType{field.ErrorTypeDuplicate, field.ErrorTypeRequired},
	},
	RulePattern: {remedy: remedyObjects, errors: invalid, detail: "should match"},
	RuleFormat: {
		remedy: remedyObjects,
		errors: []field.ErrorType{field.ErrorTypeTypeInvalid, field.ErrorTypeInvalid},
		detail: "must be of type",
	},
	RuleMultipleOf:    {remedy: remedyObjects, errors: invalid, detail: "multiple of"},
	RuleMinimum:       {remedy: remedyObjects, errors: invalid},
	RuleMaximum:       {remedy: remedyObjects, errors: invalid},
	RuleExclusive:     {remedy: remedyObjects, errors: invalid},
	RuleMinLength:     {remedy: remedyObjects, errors: invalid, detail: "at least"},
	RuleMinItems:      {remedy: remedyObjects, errors: invalid, detail: "at least"},
	RuleMinProperties: {remedy: remedyObjects, errors: invalid, detail: "at least"},
	// A CEL rule chooses the type of its error, and logic has that of whatever part does not hold.
	RuleValidation:       {remedy: remedyObjects},
	RuleLogic:            {remedy: remedyObjects, anyError: true},
	RuleOther:            {remedy: remedyObjects, anyError: true},
	RuleFieldDescribed:   {remedy: remedyObjects, anyError: true, loses: true},
	RuleEmbeddedResource: {remedy: remedyObjects, anyError: true},
	RuleDefault:          {remedy: "objects without the field behave differently from now on: set it where that matters"},
}
