package safety

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rule names what changed.
type Rule string

// Rules about a CRD as a whole. The API server itself rejects the first four changes, even if there
// are no objects.
const (
	RuleScopeChanged             Rule = "scopeChanged"
	RuleGroupChanged             Rule = "groupChanged"
	RuleKindChanged              Rule = "kindChanged"
	RuleStoredVersionRemoved     Rule = "storedVersionRemoved"
	RuleServedVersionRemoved     Rule = "servedVersionRemoved"
	RuleStorageVersionChanged    Rule = "storageVersionChanged"
	RuleVersionDeprecated        Rule = "versionDeprecated"
	RuleConversionWebhookRemoved Rule = "conversionWebhookRemoved"
	RulePlaceholderCA            Rule = "placeholderCA"
	RuleObjectsUnreadable        Rule = "objectsUnreadable"
)

// Rules about the compatibility of a CRD with managers that were published with another one.
const (
	RuleCRDMissing            Rule = "crdMissing"
	RuleServedVersionMissing  Rule = "servedVersionMissing"
	RuleVersionNotConvertible Rule = "versionNotConvertible"
)

// Rules about a version.
const (
	RuleStatusSubresourceRemoved Rule = "statusSubresourceRemoved"
	RuleScaleSubresourceChanged  Rule = "scaleSubresourceChanged"
	RuleSelectableFieldRemoved   Rule = "selectableFieldRemoved"
	// RuleObjectInvalid is for objects that break although no other rule explains it.
	RuleObjectInvalid Rule = "objectInvalid"
)

// Rules about a field.
const (
	RuleFieldRemoved             Rule = "fieldRemoved"
	RuleFieldNotInStorageVersion Rule = "fieldNotInStorageVersion"
	RuleFieldRequired            Rule = "fieldRequired"
	RuleFieldSchemaAdded         Rule = "fieldSchemaAdded"
	RuleUnknownFieldsPruned      Rule = "unknownFieldsPruned"
	RuleTypeChanged              Rule = "typeChanged"
	RuleDefaultChanged           Rule = "defaultChanged"
	RuleEnumRestricted           Rule = "enumRestricted"
	RuleNullableRemoved          Rule = "nullableRemoved"
	RulePatternChanged           Rule = "patternChanged"
	RuleFormatChanged            Rule = "formatChanged"
	RuleMultipleOfChanged        Rule = "multipleOfChanged"
	RuleExclusiveBoundAdded      Rule = "exclusiveBoundAdded"
	RuleMinimumRaised            Rule = "minimumRaised"
	RuleMaximumLowered           Rule = "maximumLowered"
	RuleMinLengthRaised          Rule = "minLengthRaised"
	RuleMaxLengthLowered         Rule = "maxLengthLowered"
	RuleMinItemsRaised           Rule = "minItemsRaised"
	RuleMaxItemsLowered          Rule = "maxItemsLowered"
	RuleMinPropertiesRaised      Rule = "minPropertiesRaised"
	RuleMaxPropertiesLowered     Rule = "maxPropertiesLowered"
	RuleListTypeChanged          Rule = "listTypeChanged"
	RuleMapTypeChanged           Rule = "mapTypeChanged"
	RuleEmbeddedResourceRequired Rule = "embeddedResourceRequired"
	RuleValidationRuleAdded      Rule = "validationRuleAdded"
	// RuleCompositionChanged is about allOf, anyOf, oneOf and not.
	RuleCompositionChanged Rule = "compositionChanged"
	// RuleSchemaChanged is for changes that no other rule describes.
	RuleSchemaChanged Rule = "schemaChanged"
)

// traits are what is known about a rule.
type traits struct {
	// level of the rule's findings before they are tried on objects; Warning by default.
	level  Level
	remedy string
	// ignoresObjects means that objects do not change the level.
	ignoresObjects bool
	// dropsData means that the change can drop data of objects.
	dropsData bool
	// errorTypes are the types of the API server's errors about a field that violates the rule, and
	// errorText is a part of their text.
	errorTypes []field.ErrorType
	errorText  string
	// anyError means that the rule can cause errors of any type, about the field or a part of it.
	anyError bool
}

const (
	remedyObjects = "change the affected objects before the upgrade"
	remedyData    = "move the field's data elsewhere or unset the field before the upgrade"
	remedyClients = "move the clients to another version and rewrite the objects' metadata.managedFields " +
		"before the upgrade"
	remedyMigrate = "migrate the objects to the storage version and trim status.storedVersions before the upgrade"
	remedyWebhook = "make the provider's conversion webhook respond"
	remedyNewName = "the API server rejects this change: the provider must publish a CRD with another name " +
		"or undo the change"
	remedyCompatible = "use a version of the provider that is compatible with the CRD in the cluster, " +
		"or ask the CRD's owner to change it"
)

// concernsObjects reports whether a remedy is about objects, so that there is nothing to do if no
// object is affected.
func concernsObjects(remedy string) bool {
	return remedy == remedyObjects || remedy == remedyData || remedy == remedyClients
}

// traitsOf returns what is known about a rule.
func traitsOf(rule Rule) traits {
	t := ruleTraits[rule]
	if t.level == "" {
		t.level = Warning
	}

	return t
}

// invalid is the type of most validation errors.
var invalid = []field.ErrorType{field.ErrorTypeInvalid}

var ruleTraits = map[Rule]traits{
	// the CRD as a whole
	RuleScopeChanged:          {level: Error, ignoresObjects: true, remedy: remedyNewName},
	RuleGroupChanged:          {level: Error, ignoresObjects: true, remedy: remedyNewName},
	RuleKindChanged:           {level: Error, ignoresObjects: true, remedy: remedyNewName},
	RuleStoredVersionRemoved:  {level: Error, ignoresObjects: true, remedy: remedyMigrate},
	RuleServedVersionRemoved:  {level: Error, remedy: remedyClients},
	RuleStorageVersionChanged: {level: Info, ignoresObjects: true},
	RuleVersionDeprecated: {
		level:          Info,
		ignoresObjects: true,
		remedy:         "move its clients to another version before it is removed",
	},
	RuleConversionWebhookRemoved: {
		remedy: "make sure that all versions have the same fields, or keep the webhook",
	},
	RulePlaceholderCA: {
		level:          Info,
		ignoresObjects: true,
		remedy:         "remove the field caBundle from the published CRD; cert-manager adds it",
	},
	RuleObjectsUnreadable: {
		ignoresObjects: true,
		remedy:         remedyWebhook + ", or judge the other findings yourself",
	},

	// compatibility
	RuleCRDMissing:           {level: Error, ignoresObjects: true, remedy: "ask its owner to install it"},
	RuleServedVersionMissing: {level: Error, ignoresObjects: true, remedy: remedyCompatible},
	RuleVersionNotConvertible: {
		level:          Error,
		ignoresObjects: true,
		remedy:         "stay with a version of the provider that knows the storage version",
	},

	// a version
	RuleStatusSubresourceRemoved: {
		remedy: "managers that write the status subresource will fail: upgrade them together with the CRD",
	},
	RuleScaleSubresourceChanged: {
		remedy: "autoscalers and kubectl scale will fail for these objects: stop using them first",
	},
	RuleSelectableFieldRemoved: {
		remedy: "clients that select by this field will fail: change them first",
	},
	RuleObjectInvalid: {dropsData: true, anyError: true, remedy: remedyObjects},

	// data of a field
	RuleFieldRemoved:             {level: Error, dropsData: true, remedy: remedyData},
	RuleFieldNotInStorageVersion: {level: Error, dropsData: true, remedy: remedyData},
	RuleUnknownFieldsPruned:      {dropsData: true, remedy: remedyData},
	RuleTypeChanged: {
		level:      Error,
		dropsData:  true,
		remedy:     remedyObjects,
		errorTypes: []field.ErrorType{field.ErrorTypeTypeInvalid},
	},
	RuleDefaultChanged: {
		remedy: "objects without the field will behave differently: set the field where that matters",
	},

	// validation of a field
	RuleFieldRequired:        {remedy: remedyObjects, errorTypes: []field.ErrorType{field.ErrorTypeRequired}},
	RuleEnumRestricted:       {remedy: remedyObjects, errorTypes: []field.ErrorType{field.ErrorTypeNotSupported}},
	RuleNullableRemoved:      {remedy: remedyObjects, errorTypes: []field.ErrorType{field.ErrorTypeTypeInvalid}},
	RuleMaxLengthLowered:     {remedy: remedyObjects, errorTypes: []field.ErrorType{field.ErrorTypeTooLong}},
	RuleMaxItemsLowered:      {remedy: remedyObjects, errorTypes: []field.ErrorType{field.ErrorTypeTooMany}},
	RuleMaxPropertiesLowered: {remedy: remedyObjects, errorTypes: []field.ErrorType{field.ErrorTypeTooMany}},
	RuleListTypeChanged: {
		remedy:     remedyObjects,
		errorTypes: []field.ErrorType{field.ErrorTypeDuplicate, field.ErrorTypeRequired},
	},
	RuleFormatChanged: {
		remedy:     remedyObjects,
		errorTypes: []field.ErrorType{field.ErrorTypeTypeInvalid, field.ErrorTypeInvalid},
		errorText:  "must be of type",
	},
	RulePatternChanged:      {remedy: remedyObjects, errorTypes: invalid, errorText: "should match"},
	RuleMultipleOfChanged:   {remedy: remedyObjects, errorTypes: invalid, errorText: "multiple of"},
	RuleMinimumRaised:       {remedy: remedyObjects, errorTypes: invalid},
	RuleMaximumLowered:      {remedy: remedyObjects, errorTypes: invalid},
	RuleExclusiveBoundAdded: {remedy: remedyObjects, errorTypes: invalid},
	RuleMinLengthRaised:     {remedy: remedyObjects, errorTypes: invalid, errorText: "at least"},
	RuleMinItemsRaised:      {remedy: remedyObjects, errorTypes: invalid, errorText: "at least"},
	RuleMinPropertiesRaised: {remedy: remedyObjects, errorTypes: invalid, errorText: "at least"},

	// A CEL rule chooses the type of its error, and a composition has that of the part that is
	// violated.
	RuleValidationRuleAdded:      {remedy: remedyObjects},
	RuleCompositionChanged:       {remedy: remedyObjects, anyError: true},
	RuleSchemaChanged:            {remedy: remedyObjects, anyError: true},
	RuleFieldSchemaAdded:         {remedy: remedyObjects, anyError: true, dropsData: true},
	RuleEmbeddedResourceRequired: {remedy: remedyObjects, anyError: true},
}
