package lint

import (
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// The files contract_*.go describe what the contracts of Cluster API require of the CRDs of providers: which
// CRDs belong to a contract, and which fields they need. They are a table of facts, with the code to look them
// up in a CRD; contractRules turns it into rules.

// resource is a kind of a provider that a contract defines, such as InfraCluster.
type resource struct {
	// Name is the contract's name of the resource.
	Name string
	// Area is the first part of the names of the rules about the resource, such as "infra-cluster".
	Area string
	// Page is the URL of the page of the contract.
	Page string
	// Definition is the section of the page about the CRD.
	Definition string
	// External reports whether objects of the kind are not referenced by Cluster API's core, as IP
	// address pools, so the rules about references do not apply.
	External bool
	// Template is what the contract says about the template of the resource, such as
	// InfraClusterTemplate; nil if it has none.
	Template *resourceTemplate
	// Requirements are the fields of the contract.
	Requirements []requiredFields

	// suffix is how the names of the kinds end, by convention.
	suffix string
	// group is Cluster API's own API group for the resource.
	group string
	// provider is the type of the providers that define the resource.
	provider v1alpha2.ProviderType
	// needsTemplate reports whether a kind without a template is another one, whatever its name is.
	needsTemplate bool
}

// strength is how strict a requirement is, in the words of the contracts.
type strength int

const (
	// must is for requirements without which Cluster API's core fails. That is less than what the contracts
	// call MUST.
	must strength = iota
	// should is for requirements without which a feature does not work.
	should
	// may is for advice.
	may
)

// resourceTemplate is what a contract says about the template of a resource.
type resourceTemplate struct {
	// Section is the section of the resource's page.
	Section string
	// Strength is how much is lost without the template.
	Strength strength
	// Why is what happens if the template is missing.
	Why string
	// Verbs are what Cluster API's core has to be permitted to do with the template.
	Verbs []string
}

// requiredFields is a rule of a contract about fields.
type requiredFields struct {
	// Name is the second part of the name of the rule, such as "provider-id".
	Name string
	// Section is the section of the resource's page, or empty for the whole page.
	Section string
	// Strength is how much is lost if the requirement is not met.
	Strength strength
	// Text and Why are what is required, and what happens otherwise, as complete sentences.
	Text, Why string
	// Fields are the fields by contract version.
	Fields map[string][]field

	// applies reports whether the requirement concerns a version; nil for all versions.
	applies func(*crdVersion) bool
}

// Applies reports whether the requirement concerns a version.
func (r requiredFields) Applies(v *crdVersion) bool { return r.applies == nil || r.applies(v) }

// definesKinds reports whether providers of a type define kinds to which Cluster API's core refers.
func definesKinds(provider v1alpha2.ProviderType) bool {
	return slices.ContainsFunc(resources(), func(r *resource) bool { return r.provider == provider && !r.External })
}

// resources returns the resources of all contracts.
func resources() []*resource {
	return []*resource{controlPlane, infraCluster, infraMachine, infraMachinePool, bootstrapConfig, ipPool}
}

// URL returns the address of a section of the resource's page, or that of the page.
func (r *resource) URL(section string) string {
	if section == "" {
		return r.Page
	}

	return r.Page + "#" + section
}

var (
	allVerbs = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	// templateVerbs are for templates that only users create.
	templateVerbs = []string{"get", "list", "patch", "update", "watch"}
)

// Verbs returns what Cluster API's core has to be permitted to do with the objects of a CRD.
func (c *crd) Verbs() []string {
	if c.IsTemplate {
		return slices.Clone(c.Resource.Template.Verbs)
	}

	return slices.Clone(allVerbs)
}

// coreGroups are the API groups of providers to which Cluster API's core always has access.
var coreGroups = []string{controlPlane.group, infraCluster.group, bootstrapConfig.group}

// InCoreGroup reports whether Cluster API's core has access to the objects of a CRD without a role of
// the provider.
func (c *crd) InCoreGroup() bool { return slices.Contains(coreGroups, c.Group) }

// assignResources sets the resources of the CRDs of a provider.
func assignResources(provider v1alpha2.ProviderType, crds []*crd) {
	kinds := map[[2]string]bool{}
	for _, c := range crds {
		kinds[[2]string{c.Group, c.Kind}] = true
	}

	for _, c := range crds {
		c.assign(provider, func(kind string) bool { return kinds[[2]string{c.Group, kind}] })
	}

	for _, r := range resources() {
		if r.provider == provider {
			assume(r, crds)
		}
	}
}

// assume assigns the resource to kinds that have nothing but its name if it would have no kind otherwise,
// though providers of this type have it.
func assume(r *resource, crds []*crd) {
	if slices.ContainsFunc(crds, func(c *crd) bool { return c.Resource == r && !c.NameOnly }) {
		return
	}

	for _, c := range crds {
		if strings.HasSuffix(c.baseKind(), r.suffix) && c.Resource == nil && !c.isNamedAsCore() || c.Resource == r {
			c.set(r)
			c.NameOnly = false
		}
	}
}

// coreKinds are kinds of Cluster API's core, whose names end as those of infrastructure.
var coreKinds = []string{"Cluster", "Machine", "MachinePool"}

// isNamedAsCore reports whether a kind is named as one of core but belongs to another group, and has no template. Core
// does not refer to such kinds: they are what another project has instead of core's.
func (c *crd) isNamedAsCore() bool {
	return slices.Contains(coreKinds, c.Kind) && !c.InCoreGroup() && !c.HasTemplate
}

// assign sets the resource of a CRD by its name and group, and by the other kinds of its group.
func (c *crd) assign(provider v1alpha2.ProviderType, exists func(kind string) bool) {
	base := c.baseKind()
	c.HasTemplate = exists(base + "Template")
	hasTemplate := exists(base) && c.HasTemplate

	if !definesKinds(provider) || c.isNamedAsCore() {
		return
	}

	r := c.resourceByName(provider, hasTemplate)

	// In a group of the provider's own, other kinds may have such a name by chance.
	if r != nil && (c.InCoreGroup() || hasTemplate || c.hasContract()) {
		c.set(r)
		c.NameOnly = r.needsTemplate && !hasTemplate
	}
}

// set sets the resource of a CRD, or of its template.
func (c *crd) set(r *resource) {
	c.Resource = r
	c.IsTemplate = c.Kind != c.baseKind()
}

func (c *crd) baseKind() string { return strings.TrimSuffix(c.Kind, "Template") }

// resourceByName returns the resource that a kind is probably meant to be, or nil.
func (c *crd) resourceByName(provider v1alpha2.ProviderType, hasTemplate bool) *resource {
	base := c.baseKind()

	switch {
	case strings.HasSuffix(base, controlPlane.suffix):
		return controlPlane
	case c.Group == controlPlane.group:
		// The group contains other kinds, too.
		if hasTemplate {
			return controlPlane
		}
	case strings.HasSuffix(base, bootstrapConfig.suffix):
		if strings.HasPrefix(c.Group, "bootstrap.") || provider == v1alpha2.BootstrapProviderType {
			return bootstrapConfig
		}
	case strings.HasSuffix(base, infraMachinePool.suffix):
		return infraMachinePool
	case strings.HasSuffix(base, infraMachine.suffix):
		return infraMachine
	case strings.HasSuffix(base, infraCluster.suffix):
		return infraCluster
	case provider == v1alpha2.ControlPlaneProviderType && hasTemplate && c.hasContract():
		return controlPlane
	}

	return nil
}
