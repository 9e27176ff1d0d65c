package safety

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// CheckCompatibility checks whether managers that were published with the required CRD can work with
// the live one: after a downgrade, which leaves newer CRDs as they are, or because something else
// manages the CRD. An error in the report means that they cannot. Live includes the status; it is
// nil if the cluster does not have the CRD.
func CheckCompatibility(required, live *apiextensionsv1.CustomResourceDefinition) *Report {
	if live == nil {
		at := location{crd: required.Name}
		missing := at.finding(RuleCRDMissing, "the cluster does not have this CustomResourceDefinition")

		return &Report{Findings: []Finding{missing}}
	}

	report := &Report{}
	report.Findings = append(report.Findings, compareIdentity(required, live)...)

	for i := range required.Spec.Versions {
		if v := &required.Spec.Versions[i]; v.Served {
			report.Findings = append(report.Findings, checkVersion(required.Name, v, versions.Find(live, v.Name))...)
		}
	}

	report.Findings = append(report.Findings, findUnconvertible(required, live)...)
	report.sort()

	return report
}

// checkVersion checks one served version. Managers work with the one that their CRD stores; the
// others are for clients.
func checkVersion(crd string, required, live *apiextensionsv1.CustomResourceDefinitionVersion) []Finding {
	if live == nil || !live.Served {
		at := location{crd: crd, version: required.Name}

		f := at.finding(RuleServedVersionMissing, "the cluster does not serve the version")
		if !required.Storage {
			f.Level = Warning
		}

		return []Finding{f}
	}

	findings := newVersionChange(crd, required, live).findings

	for i := range findings {
		f := &findings[i]

		switch {
		case f.Level == Info:
		case required.Storage && breaksManagers(required, f):
			f.Level = Error
		default:
			f.Level = Warning
		}

		f.Message = "compared with what the managers need, " + f.Message
		f.Remedy = remedyCompatible
	}

	return findings
}

// breaksManagers reports whether what managers write would be dropped or rejected. The live CRD may
// forbid other things as well, but managers need not ever write these, and the existing objects are
// valid.
func breaksManagers(required *apiextensionsv1.CustomResourceDefinitionVersion, f *Finding) bool {
	switch f.Rule {
	case RuleFieldRemoved, RuleTypeChanged, RuleStatusSubresourceRemoved:
		return true
	case RuleFieldRequired:
		// Managers cannot set a field that they do not know.
		return !inStatus(f.Path) && !defines(rootSchema(required.Schema), f.Path)
	default:
		return false
	}
}

// findUnconvertible finds versions that objects may be stored in and that the managers' conversion
// webhook does not know. The API server calls the webhook that the live CRD names, which is that of
// the managers if the Service has the same name.
func findUnconvertible(required, live *apiextensionsv1.CustomResourceDefinition) []Finding {
	service := conversionService(required)
	if service == "" || service != conversionService(live) {
		return nil
	}

	var findings []Finding

	for _, v := range live.Spec.Versions {
		stored := v.Storage || slices.Contains(live.Status.StoredVersions, v.Name)
		if !stored || versions.Find(required, v.Name) != nil {
			continue
		}

		at := location{crd: required.Name, version: v.Name}
		findings = append(findings, at.finding(RuleVersionNotConvertible,
			"objects are stored in this version, which the managers' conversion webhook does not know"))
	}

	return findings
}

// conversionService returns the name of the Service that converts a CRD's objects; empty if there is
// none.
func conversionService(crd *apiextensionsv1.CustomResourceDefinition) string {
	if !hasConversionWebhook(crd) || crd.Spec.Conversion.Webhook == nil {
		return ""
	}

	config := crd.Spec.Conversion.Webhook.ClientConfig
	if config == nil || config.Service == nil {
		return ""
	}

	return config.Service.Name
}
