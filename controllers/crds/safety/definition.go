package safety

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// comparison is what the rules find about one CRD.
type comparison struct {
	live, desired *apiextensionsv1.CustomResourceDefinition
	// whole are the findings about the CRD, and gone those of them about versions that will not be
	// served.
	whole, gone []*Finding
	pairs       []*pair
	looks       map[string]*Look
}

// pair is a version as it is, and as it is to be. Objects are read in the one and tried on the
// other.
type pair struct {
	from, to *apiextensionsv1.CustomResourceDefinitionVersion
	// served reports whether objects can be read in the version.
	served   bool
	findings []*Finding
}

// compare finds by the rules. There is nothing to find when live is nil.
func compare(live, desired *apiextensionsv1.CustomResourceDefinition) *comparison {
	c := &comparison{live: live, desired: desired, looks: map[string]*Look{}}
	if live == nil {
		return c
	}

	c.identity()
	c.versions()
	c.conversion()

	return c
}

// report is what was found, and seen.
func (c *comparison) report() *Report {
	all := slices.Concat(c.whole, c.gone)
	for _, p := range c.pairs {
		all = append(all, p.findings...)
	}

	r := &Report{}

	for _, f := range all {
		f.last = nil
		r.Findings = append(r.Findings, *f)
	}

	for _, l := range c.looks {
		if l != nil {
			r.Looks = append(r.Looks, *l)
		}
	}

	r.sort()

	return r
}

func (c *comparison) add(rule Rule, version, message string, args ...any) {
	c.whole = append(c.whole, newFinding(rule, c.live.Name, version, "", message, args...))
}

// identity compares what never changes in the life of a CRD.
func (c *comparison) identity() {
	for _, f := range []struct {
		rule          Rule
		live, desired string
	}{
		{RuleScope, string(c.live.Spec.Scope), string(c.desired.Spec.Scope)},
		{RuleGroup, c.live.Spec.Group, c.desired.Spec.Group},
		{RuleKind, c.live.Spec.Names.Kind, c.desired.Spec.Names.Kind},
	} {
		if f.live != f.desired {
			c.add(f.rule, "", "the %s changes from %s to %s", f.rule, f.live, f.desired)
		}
	}
}

// versions compares each version with the version of the same name.
func (c *comparison) versions() {
	for i := range c.live.Spec.Versions {
		from := &c.live.Spec.Versions[i]
		to := version(c.desired, from.Name)

		stored := slices.Contains(c.live.Status.StoredVersions, from.Name)
		switch {
		case to == nil && stored:
			c.add(RuleStoredVersionRemoved, from.Name, "the version is removed, and objects may be stored in it")
		case to == nil, from.Served && !to.Served:
			// Objects' managedFields can name a version long after it was served last, and
			// server-side apply fails on them.
			f := newFinding(RuleServedVersionRemoved, c.live.Name, from.Name, "", "the version is not served any more")
			if !from.Served {
				f.Level, f.Message = Warning, "the version, which was not served, is removed"
			}

			c.gone = append(c.gone, f)
		}

		if to == nil || !from.Served && !stored {
			continue
		}

		p := comparePair(c.live.Name, from, to)
		if c.live.Spec.PreserveUnknownFields && !c.desired.Spec.PreserveUnknownFields {
			p.findings = append(
				p.findings,
				newFinding(
					RuleUnknownFields,
					c.live.Name,
					from.Name,
					"",
					"fields that the schema does not have are not kept any more",
				),
			)
		}

		c.pairs = append(c.pairs, p)
	}
}

func comparePair(crd string, from, to *apiextensionsv1.CustomResourceDefinitionVersion) *pair {
	p := &pair{from: from, to: to, served: from.Served}
	add := func(rule Rule, message string, args ...any) {
		p.findings = append(p.findings, newFinding(rule, crd, from.Name, "", message, args...))
	}

	if !same(from.Schema, to.Schema) {
		p.findings = compareSchemas(crd, from.Name, from.Schema, to.Schema)
	}

	before, after := subresources(from), subresources(to)
	if before.Status != nil && after.Status == nil {
		add(RuleStatusRemoved, "the status subresource is removed")
	}

	if before.Scale != nil && !equality.Semantic.DeepEqual(before.Scale, after.Scale) {
		add(RuleScaleRemoved, "the scale subresource is removed or has other paths")
	}

	for _, f := range from.SelectableFields {
		if !slices.Contains(to.SelectableFields, f) {
			add(RuleSelectableFieldRemoved, "the field %s cannot be selected by any more", strings.TrimPrefix(f.JSONPath, "."))
		}
	}

	if !from.Deprecated && to.Deprecated {
		add(RuleVersionDeprecated, "the version becomes deprecated")
	}

	return p
}

func subresources(v *apiextensionsv1.CustomResourceDefinitionVersion) apiextensionsv1.CustomResourceSubresources {
	if v.Subresources == nil {
		return apiextensionsv1.CustomResourceSubresources{}
	}

	return *v.Subresources
}

// conversion compares how objects get from one version to another. A webhook carries what it knows
// how to carry; without one, objects are taken as they are, so the new storage version must do for
// those of the old.
func (c *comparison) conversion() {
	webhook := converts(c.desired)
	if converts(c.live) && !webhook {
		c.add(RuleConversionRemoved, "", "the conversion webhook is removed, so a field that only one version has is lost")
	}

	from, to := storage(c.live), storage(c.desired)
	if from == nil || to == nil || from.Name == to.Name {
		return
	}

	c.add(RuleStorageVersionMoved, "", "objects will be stored as %s, and no longer as %s", to.Name, from.Name)

	if webhook || same(from.Schema, to.Schema) {
		return
	}

	p := &pair{from: from, to: to, served: from.Served}

	p.findings = compareSchemas(c.live.Name, to.Name, from.Schema, to.Schema)
	for _, f := range p.findings {
		if f.Rule == RuleFieldRemoved {
			f.Rule = RuleFieldLostByMigration
		}

		f.Message = fmt.Sprintf("from %s to %s, in which objects will be stored, %s", from.Name, to.Name, f.Message)
	}

	c.pairs = append(c.pairs, p)
}

func converts(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// storage is the version in which objects are stored; nil in a CRD that is not valid.
func storage(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	i := slices.IndexFunc(
		crd.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage },
	)
	if i < 0 {
		return nil
	}

	return &crd.Spec.Versions[i]
}

func (c *comparison) resource(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: c.live.Spec.Group, Version: version, Resource: c.live.Spec.Names.Plural}
}
