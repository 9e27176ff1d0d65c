package lint

import (
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

// ownerRule is about the owners of what managers create by the contracts. No file shows whether their references block
// the deletion of the owners, so the rule is advice.
var ownerRule = rule{
	Name:     "references/owner-finalizers",
	Level:    contract.Info,
	Contract: bootstrapConfig.URL(sectionGroup),
	Requirement: "A manager that blocks the deletion of owners may update their finalizers: those of BootstrapConfigs, " +
		"of control planes with Machines, and of IPAddressClaims and their pools.",
	Why: "If the manager sets blockOwnerDeletion, as SetControllerReference and NewControllerRef do, the API server " +
		"refuses the object where the admission plugin OwnerReferencesPermissionEnforcement runs, as on OpenShift.",
	Remedy: "Grant the manager update on the resource, for example with the marker " +
		"+kubebuilder:rbac:groups=<group>,resources=<plural>/finalizers,verbs=update, or set no blockOwnerDeletion.",
	Check: checkOwners,
}

const ipamGroup = "ipam.cluster.x-k8s.io"

// checkOwners checks nothing if the components bind roles that they do not contain, such as cluster-admin.
func checkOwners(p *parsedBundle, report reporter) {
	if p.bindsOtherRoles() {
		return
	}

	const missing = "owns %s, but no role grants the manager update on %s"

	for _, c := range p.crds {
		owned, section := p.ownedBy(c)
		if owned != "" && p.granting("update", c.Group, c.Plural+"/finalizers") == nil {
			report(p.atCRD(c, section), missing, owned, c.Plural+"/finalizers")
		}
	}

	creator := p.granting("create", ipamGroup, "ipaddresses")
	if creator != nil && p.granting("update", ipamGroup, "ipaddressclaims/finalizers") == nil {
		at := p.componentsFile.at(creator)
		at.Contract = ipPool.URL(sectionAddress)
		report(at, "grants create on ipaddresses, whose owners are IPAddressClaims, but no role grants the manager "+
			"update on ipaddressclaims/finalizers")
	}
}

// sectionAddress is the section of the page about IPAM with the owners of an IPAddress.
const sectionAddress = "normal-ipaddressclaim"

// ownedBy returns what managers create with an object of a CRD as its owner, or "", and the section of the page about
// it.
func (p *parsedBundle) ownedBy(c *crd) (owned, section string) {
	if c.Resource == nil || c.IsTemplate || c.NameOnly {
		return "", ""
	}

	switch c.Resource {
	case bootstrapConfig:
		return "Secrets", sectionGroup
	case controlPlane:
		_, name := c.Implementation(p.contract)
		if version := c.Version(name); version != nil && version.HasMachines() {
			return "Machines", sectionGroup
		}
	case ipPool:
		if p.granting("create", ipamGroup, "ipaddresses") != nil {
			return "IPAddresses", sectionAddress
		}
	}

	return "", ""
}

// granting returns a role of the components that grants a verb on a resource of a group, or nil.
func (p *parsedBundle) granting(verb, group, resource string) *bundle.Document {
	roles := p.objects("ClusterRole", "Role")

	i := slices.IndexFunc(roles, func(role *bundle.Document) bool {
		return containsOrAll(verbsOn(role, group, resource), verb)
	})
	if i < 0 {
		return nil
	}

	return roles[i]
}

// verbsOn returns the verbs that a role grants on a resource of a group.
func verbsOn(role *bundle.Document, group, resource string) []string {
	var verbs []string

	_, subresource, _ := strings.Cut(resource, "/")

	for _, rule := range bundle.NestedMaps(role.Object.Object, "rules") {
		resources := nestedStrings(rule, "resources")

		if containsOrAll(nestedStrings(rule, "apiGroups"), group) &&
			(containsOrAll(resources, resource) || slices.Contains(resources, "*/"+subresource)) {
			verbs = append(verbs, nestedStrings(rule, "verbs")...)
		}
	}

	return verbs
}

// bindsOtherRoles reports whether the components grant permissions that are not known.
func (p *parsedBundle) bindsOtherRoles() bool {
	return slices.ContainsFunc(p.objects("RoleBinding", "ClusterRoleBinding"), func(doc *bundle.Document) bool {
		kind := bundle.NestedString(doc.Object.Object, "roleRef", "kind")
		name := bundle.NestedString(doc.Object.Object, "roleRef", "name")

		return !p.has(kind, name) && (name == "cluster-admin" || !isBuiltIn(kind, name))
	})
}
