package crds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/crdify/pkg/validations"

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
	if live == nil {
		return nil
	}

	name := versions.StorageName(packaged)
	known := fieldsOf(versions.Find(packaged, name))
	current := fieldsOf(versions.Find(live, name))

	var reasons []string

	for path, field := range known {
		now := current[path]
		parent := current[path[:max(0, strings.LastIndexAny(path, ".["))]]

		switch {
		case now != nil && now.Type != field.Type:
			reasons = append(reasons, "has another type in "+displayed(path))
		case now == nil && parent != nil && !ptr.Deref(parent.XPreserveUnknownFields, false):
			reasons = append(reasons, "lacks the field "+displayed(path))
		}
	}

	for path, field := range current {
		for _, name := range field.Required {
			child := path + "." + name
			if known[child] == nil && current[child] != nil && current[child].Default == nil {
				reasons = append(reasons, "requires the field "+displayed(child))
			}
		}
	}

	slices.Sort(reasons)

	return reasons
}

// fieldsOf returns the schemas of a version's fields by their paths, such as "^.spec.hosts[*].address".
func fieldsOf(
	version *apiextensionsv1.CustomResourceDefinitionVersion,
) map[string]*apiextensionsv1.JSONSchemaProps {
	if version == nil || version.Schema == nil {
		return nil
	}

	return validations.FlattenCRDVersion(*version)
}

// displayed returns a path as messages have it: without the root.
func displayed(path string) string { return strings.TrimPrefix(path, "^.") }

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
