package safety

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// comparison is what the rules find about the change of one CRD, before it is tried on objects.
type comparison struct {
	live, desired *apiextensionsv1.CustomResourceDefinition
	// findings are about the CRD as a whole; objects do not change their level.
	findings []Finding
	// removedVersions are findings about versions that will no longer be served. Their level depends
	// on whether managedFields of objects name the version.
	removedVersions []Finding
	// versions are compared in this order.
	versions []versionChange
}

// versionChange is the change of one version, or from one storage version to another. Objects are
// read in from and tried on to.
type versionChange struct {
	from, to *apiextensionsv1.CustomResourceDefinitionVersion
	findings []Finding
}

// compare compares two definitions by the rules.
func compare(live, desired *apiextensionsv1.CustomResourceDefinition) *comparison {
	c := &comparison{live: live, desired: desired}

	c.findings = compareIdentity(live, desired)
	c.compareVersions()
	c.compareConversion()

	return c
}

// compareIdentity compares what cannot change during the life of a CRD.
func compareIdentity(live, desired *apiextensionsv1.CustomResourceDefinition) []Finding {
	var findings []Finding

	for _, p := range []struct {
		rule          Rule
		name          string
		live, desired string
	}{
		{RuleScopeChanged, "scope", string(live.Spec.Scope), string(desired.Spec.Scope)},
		{RuleGroupChanged, "group", live.Spec.Group, desired.Spec.Group},
		{RuleKindChanged, "kind", live.Spec.Names.Kind, desired.Spec.Names.Kind},
	} {
		if p.live != p.desired {
			crd := location{crd: live.Name}
			findings = append(findings, crd.finding(p.rule, "the %s changes from %s to %s", p.name, p.live, p.desired))
		}
	}

	return findings
}

// compareVersions compares each live version with the desired version of the same name.
func (c *comparison) compareVersions() {
	for i := range c.live.Spec.Versions {
		from := &c.live.Spec.Versions[i]
		to := versions.Find(c.desired, from.Name)
		stored := slices.Contains(c.live.Status.StoredVersions, from.Name)

		switch {
		case to == nil && stored:
			c.add(from.Name, RuleStoredVersionRemoved, "the version is removed, but objects may be stored in it")
		case to == nil, from.Served && !to.Served:
			c.removedVersions = append(c.removedVersions, c.versionRemoved(from))
		}

		if to == nil || !from.Served && !stored {
			continue
		}

		c.versions = append(c.versions, c.compareVersion(from, to))
	}
}

// versionRemoved returns the finding that a version is no longer served. Even one that has not been
// served for a long time matters: managedFields of objects can still name it, and server-side apply
// fails for these objects once the version is gone.
func (c *comparison) versionRemoved(v *apiextensionsv1.CustomResourceDefinitionVersion) Finding {
	at := location{crd: c.live.Name, version: v.Name}
	if v.Served {
		return at.finding(RuleServedVersionRemoved, "the version is no longer served")
	}

	f := at.finding(RuleServedVersionRemoved, "the version, which was not served, is removed")
	f.Level = Warning

	return f
}

func (c *comparison) compareVersion(from, to *apiextensionsv1.CustomResourceDefinitionVersion) versionChange {
	change := newVersionChange(c.live.Name, from, to)

	if c.live.Spec.PreserveUnknownFields && !c.desired.Spec.PreserveUnknownFields {
		at := location{crd: c.live.Name, version: from.Name}
		change.findings = append(change.findings, at.finding(RuleUnknownFieldsPruned, messageUnknownFieldsPruned))
	}

	return change
}

// newVersionChange compares two versions of a CRD. The findings name the first.
func newVersionChange(crd string, from, to *apiextensionsv1.CustomResourceDefinitionVersion) versionChange {
	at := location{crd: crd, version: from.Name}
	findings := compareSchemas(at, from.Schema, to.Schema)

	before := subresourcesOf(from)
	after := subresourcesOf(to)

	if before.Status != nil && after.Status == nil {
		findings = append(findings, at.finding(RuleStatusSubresourceRemoved, "the status subresource is removed"))
	}

	if before.Scale != nil && !equality.Semantic.DeepEqual(before.Scale, after.Scale) {
		findings = append(findings,
			at.finding(RuleScaleSubresourceChanged, "the scale subresource is removed or has other paths"))
	}

	for _, f := range from.SelectableFields {
		if !slices.Contains(to.SelectableFields, f) {
			findings = append(findings, at.finding(RuleSelectableFieldRemoved,
				"objects can no longer be selected by the field %s", strings.TrimPrefix(f.JSONPath, ".")))
		}
	}

	if !from.Deprecated && to.Deprecated {
		findings = append(findings, at.finding(RuleVersionDeprecated, "the version becomes deprecated"))
	}

	return versionChange{from: from, to: to, findings: findings}
}

func subresourcesOf(v *apiextensionsv1.CustomResourceDefinitionVersion) apiextensionsv1.CustomResourceSubresources {
	if v.Subresources == nil {
		return apiextensionsv1.CustomResourceSubresources{}
	}

	return *v.Subresources
}

// compareConversion compares how objects are converted between versions. A webhook is trusted to
// convert all fields. Without one, objects are taken as they are, so they must fit the new storage
// version.
func (c *comparison) compareConversion() {
	if hasConversionWebhook(c.live) && !hasConversionWebhook(c.desired) {
		c.add("", RuleConversionWebhookRemoved,
			"the conversion webhook is removed, so fields that only one version has are lost")
	}

	if hasPlaceholderCA(c.desired) {
		c.add("", RulePlaceholderCA, "the caBundle of the conversion webhook is not a certificate; Capstan leaves it out, "+
			"but the API server refuses the CRD if another program, such as clusterctl, applies it")
	}

	from := versions.Storage(c.live)
	to := versions.Storage(c.desired)

	if from == nil || to == nil || from.Name == to.Name {
		return
	}

	c.add("", RuleStorageVersionChanged, "objects will be stored as %s instead of %s", to.Name, from.Name)

	if !hasConversionWebhook(c.desired) {
		c.versions = append(c.versions, compareStorageVersions(c.live.Name, from, to))
	}
}

// compareStorageVersions compares the schemas of an old and a new storage version.
func compareStorageVersions(crd string, from, to *apiextensionsv1.CustomResourceDefinitionVersion) versionChange {
	findings := compareSchemas(location{crd: crd, version: to.Name}, from.Schema, to.Schema)

	for i := range findings {
		f := &findings[i]
		f.Message = fmt.Sprintf("from %s to %s, the new storage version, %s", from.Name, to.Name, f.Message)

		if f.Rule == RuleFieldRemoved {
			f.Rule = RuleFieldNotInStorageVersion
		}
	}

	return versionChange{from: from, to: to, findings: findings}
}

func hasConversionWebhook(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// hasPlaceholderCA reports whether a CRD has a caBundle that is not a certificate.
func hasPlaceholderCA(crd *apiextensionsv1.CustomResourceDefinition) bool {
	if !hasConversionWebhook(crd) || crd.Spec.Conversion.Webhook == nil {
		return false
	}

	config := crd.Spec.Conversion.Webhook.ClientConfig

	return config != nil && len(config.CABundle) > 0 && !bundle.HasCertificate(config.CABundle)
}

// add appends a finding about the CRD as a whole.
func (c *comparison) add(version string, rule Rule, format string, args ...any) {
	at := location{crd: c.live.Name, version: version}
	c.findings = append(c.findings, at.finding(rule, format, args...))
}
