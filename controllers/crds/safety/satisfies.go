package safety

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Satisfies judges whether managers that were published with one CRD can work with the one that is
// in the cluster: after a downgrade, which leaves newer CRDs where they are, or because somebody
// else owns the CRD. A Stop says that they cannot. Live, with its status, is nil when the cluster
// does not have the CRD.
func Satisfies(need, live *apiextensionsv1.CustomResourceDefinition) *Report {
	c := &comparison{live: need, desired: live}
	if live == nil {
		c.add(RuleMissing, "", "the cluster does not have this CustomResourceDefinition")
		return c.report()
	}

	c.identity()

	for i := range need.Spec.Versions {
		if need.Spec.Versions[i].Served {
			c.satisfy(&need.Spec.Versions[i])
		}
	}

	c.convertible()

	return c.report()
}

// satisfy judges one version. Managers work with the one that their CRD stores; the others are for
// clients.
func (c *comparison) satisfy(need *apiextensionsv1.CustomResourceDefinitionVersion) {
	has := version(c.desired, need.Name)
	if has == nil || !has.Served {
		f := newFinding(RuleServedVersionMissing, c.live.Name, need.Name, "", "the cluster does not serve the version")
		if !need.Storage {
			f.Level = Warning
		}

		c.whole = append(c.whole, f)

		return
	}

	p := comparePair(c.live.Name, need, has)
	for _, f := range p.findings {
		switch {
		case f.Level == Info:
		case need.Storage && c.fails(need, f):
			f.Level = Stop
		default:
			f.Level = Warning
		}

		f.Message, f.Remedy = "measured by what the managers need, "+f.Message, remedySatisfy
	}

	c.pairs = append(c.pairs, p)
}

// fails reports whether managers cannot work with what was found: what they write would be lost or
// refused. What else the live CRD forbids they may never want to write, and the objects that exist
// are valid by it.
func (c *comparison) fails(need *apiextensionsv1.CustomResourceDefinitionVersion, f *Finding) bool {
	switch f.Rule {
	case RuleFieldRemoved, RuleType, RuleStatusRemoved:
		return true
	case RuleRequired: // a field that they do not know, they cannot set
		return !inStatus(f.Path) && !has(root(need.Schema), f.Path)
	}

	return false
}

// has reports whether a schema has a field.
func has(s *props, path string) bool {
	for _, step := range strings.Split(strings.ReplaceAll(path, anyItem, "."+anyItem), ".") {
		property, known := s.Properties[step]
		switch {
		case known:
			s = &property
		case step == anyItem && s.Items != nil && s.Items.Schema != nil:
			s = s.Items.Schema
		case step == anyItem && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
			s = s.AdditionalProperties.Schema
		default:
			return preserves(s)
		}
	}

	return true
}

// convertible finds versions that objects may be stored in and that the managers' conversion
// webhook has never heard of. The API server asks the webhook that the live CRD names, which is
// theirs when the Service has the same name.
func (c *comparison) convertible() {
	need, live := conversionService(c.live), conversionService(c.desired)
	if need == "" || need != live {
		return
	}

	for _, v := range c.desired.Spec.Versions {
		stored := v.Storage
		for _, name := range c.desired.Status.StoredVersions {
			stored = stored || name == v.Name
		}

		if stored && version(c.live, v.Name) == nil {
			c.add(
				RuleConversionUnknown,
				v.Name,
				"objects are stored in this version, and the managers' conversion webhook does not know it",
			)
		}
	}
}

// conversionService is the name of the Service that converts a CRD's objects; empty when none does.
func conversionService(crd *apiextensionsv1.CustomResourceDefinition) string {
	if !converts(crd) || crd.Spec.Conversion.Webhook == nil || crd.Spec.Conversion.Webhook.ClientConfig == nil ||
		crd.Spec.Conversion.Webhook.ClientConfig.Service == nil {
		return ""
	}

	return crd.Spec.Conversion.Webhook.ClientConfig.Service.Name
}
