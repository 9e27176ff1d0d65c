package crds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// CheckUnmanaged checks whether the provider can work with the CRDs that the plan does not apply. If
// it cannot, the error is a *problem.Error.
func (a *Applier) CheckUnmanaged(ctx context.Context, p *Plan) error {
	for _, u := range p.unmanaged {
		packaged, err := u.parse()
		if err != nil {
			return err
		}

		a.rememberNeed(p.request.Label, u.name, versions.StorageName(packaged))

		live, err := a.getCached(ctx, u.name)
		if err != nil {
			return err
		}

		var reasons []string
		if live != nil {
			reasons = unusableVersions(packaged, live)
		}

		// The fields of a CRD that was applied for a newer version of the provider are not compared: the versions say
		// enough.
		if live != nil && len(reasons) == 0 && u.newerVersion == "" {
			if live, err = a.getComplete(ctx, u.name); err != nil {
				return err
			}

			reasons = unusableFields(packaged, live)
		}

		switch version := p.request.Version; {
		case u.newerVersion != "" && len(reasons) > 0:
			return newer(u.name, version, u.newerVersion, reasons)
		case live == nil:
			return Missing(u.name, version)
		case len(reasons) > 0:
			return Incompatible(u.name, version, reasons)
		}
	}

	return nil
}

// unusableVersions returns what in the scope and the versions of a live CRD, which may lack its schemas, keeps managers
// from working with it.
func unusableVersions(packaged, live *apiextensionsv1.CustomResourceDefinition) []string {
	var reasons []string

	if packaged.Spec.Scope != live.Spec.Scope {
		reasons = append(reasons, fmt.Sprintf("has the scope %s instead of %s", live.Spec.Scope, packaged.Spec.Scope))
	}

	// Managers work with the version that their CRD stores. Others are for clients.
	if needed := versions.StorageName(packaged); !apihelpers.HasServedCRDVersion(live, needed) {
		reasons = append(reasons, "does not serve the version "+needed)
	}

	// The API server calls the webhook that the live CRD names, which is that of the managers if the Service has the
	// same name.
	service := conversionService(packaged)
	if service == "" || service != conversionService(live) {
		return reasons
	}

	for _, v := range live.Spec.Versions {
		stored := v.Storage || slices.Contains(live.Status.StoredVersions, v.Name)
		if stored && versions.Find(packaged, v.Name) == nil {
			reasons = append(reasons, fmt.Sprintf("may have objects stored in the version %s, which their conversion "+
				"webhook does not know", v.Name))
		}
	}

	return reasons
}

// unusableFields returns which fields that managers write would be dropped or rejected. The live CRD may forbid more,
// but managers need not ever write it.
func unusableFields(packaged, live *apiextensionsv1.CustomResourceDefinition) []string {
	name := versions.StorageName(packaged)

	expected, current := schemaOf(packaged, name), schemaOf(live, name)
	if expected == nil || current == nil {
		return nil
	}

	reasons := compareFields("", expected, current)
	slices.Sort(reasons)

	return reasons
}

// schemaOf returns the schema of a CRD's version; nil if it has none.
func schemaOf(crd *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.JSONSchemaProps {
	v := versions.Find(crd, version)
	if v == nil || v.Schema == nil {
		return nil
	}

	return v.Schema.OpenAPIV3Schema
}

// compareFields returns why the current schema would drop or reject values of the one that managers expect. It
// leaves out what is below allOf, anyOf, oneOf and not: structural schemas define no field only there.
func compareFields(path string, expected, current *apiextensionsv1.JSONSchemaProps) []string {
	if !accepts(current, expected) {
		return []string{"has another type in " + path}
	}

	var reasons []string

	expectedFields, currentFields := fieldsOf(expected), fieldsOf(current)

	for name, field := range expectedFields {
		child := strings.TrimPrefix(path+name, ".")

		switch now := currentFields[name]; {
		case now != nil:
			reasons = append(reasons, compareFields(child, field, now)...)
		case !ptr.Deref(current.XPreserveUnknownFields, false):
			reasons = append(reasons, "lacks the field "+child)
		}
	}

	for _, name := range current.Required {
		field := currentFields["."+name]
		if expectedFields["."+name] == nil && field != nil && field.Default == nil {
			reasons = append(reasons, "requires the field "+strings.TrimPrefix(path+"."+name, "."))
		}
	}

	return reasons
}

// accepts reports whether each value of the type of one schema is also one of the current schema's type.
func accepts(current, expected *apiextensionsv1.JSONSchemaProps) bool {
	switch {
	case current.XIntOrString:
		return expected.XIntOrString || expected.Type == "integer" || expected.Type == "string"
	case current.Type == "":
		return true
	default:
		return current.Type == expected.Type || current.Type == "number" && expected.Type == "integer"
	}
}

// fieldsOf returns the schemas directly below a schema by what they add to its path: ".hosts", or "[*]" for what a list
// or map contains.
func fieldsOf(schema *apiextensionsv1.JSONSchemaProps) map[string]*apiextensionsv1.JSONSchemaProps {
	fields := map[string]*apiextensionsv1.JSONSchemaProps{}

	for name, field := range schema.Properties {
		fields["."+name] = &field
	}

	if schema.Items != nil && schema.Items.Schema != nil {
		fields["[*]"] = schema.Items.Schema
	}

	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		fields["[*]"] = schema.AdditionalProperties.Schema
	}

	return fields
}

// conversionService returns the name of the Service that converts a CRD's objects; empty if there is
// none.
func conversionService(crd *apiextensionsv1.CustomResourceDefinition) string {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil ||
		conversion.Webhook.ClientConfig.Service == nil {
		return ""
	}

	return conversion.Webhook.ClientConfig.Service.Name
}

// NewerVersion returns the version of the provider that one of its live CRDs was applied for, if it is
// higher than the given version; empty if there is no such CRD. It reads from the cache only.
func (a *Applier) NewerVersion(ctx context.Context, label, version string) (string, error) {
	list, err := a.applied(ctx, label)
	if err != nil {
		return "", err
	}

	for i := range list {
		if applied := list[i].Annotations[versionAnnotation]; isNewer(applied, version) {
			return applied, nil
		}
	}

	return "", nil
}
