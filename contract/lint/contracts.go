package lint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

// overview is the page of all contracts.
const overview = contract.Pages + "overview"

// levelOf maps how strict a requirement is to the level of its rule.
var levelOf = map[strength]contract.Level{must: contract.Error, should: contract.Warning, may: contract.Info}

// contractRules returns the rules about the resources of all contracts: their templates and fields.
func contractRules() []rule {
	var rules []rule

	for _, r := range resources() {
		if r.Template != nil {
			rules = append(rules, templateRule(r))
		}

		for _, requirement := range r.Requirements {
			rules = append(rules, fieldRule(r, requirement))
		}
	}

	return rules
}

// templateRule returns the rule that a resource has a template.
func templateRule(r *resource) rule {
	return rule{
		Name:        r.Area + "/template",
		Level:       levelOf[r.Template.Strength],
		Contract:    r.URL(r.Template.Section),
		Requirement: "Each " + r.Name + " has a CRD for its template, <kind>Template.",
		Why:         r.Template.Why,
		Remedy:      "Add the CRD of the template.",
		Check: func(p *parsedBundle, report reporter) {
			for _, c := range p.crds {
				if c.Resource != r || c.IsTemplate || c.NameOnly {
					continue
				}

				if p.findCRD(c.Group, c.Kind+"Template") == nil {
					report(p.componentsFile.at(c.doc), "has no matching CRD of kind %sTemplate", c.Kind)
				}
			}
		},
	}
}

// fieldRule returns the rule that a resource has the fields of a requirement.
func fieldRule(r *resource, requirement requiredFields) rule {
	return rule{
		Name:        r.Area + "/" + requirement.Name,
		Level:       levelOf[requirement.Strength],
		Contract:    r.URL(requirement.Section),
		Requirement: requirement.Text,
		Why:         requirement.Why,
		Remedy:      "Add the field to the Go type of the API, and regenerate the CRD.",
		Check: each(r, func(v implementation, report reporter) {
			if !requirement.Applies(v.crdVersion) {
				return
			}

			var problems []string

			for _, f := range requirement.Fields[v.contract] {
				if problem := v.Problem(f); problem != "" {
					problems = append(problems, problem)
				}
			}

			switch missing := strings.Join(problems, ", "); {
			case problems == nil:
			case r.External: // so its labels claim no contract
				report(v.location(), "version %s lacks %s", v.Name, missing)
			default:
				report(v.location(), "version %s, which implements contract %s, lacks %s", v.Name, v.contract, missing)
			}
		}),
	}
}

// implementation is the API version of a CRD by which Cluster API's core uses a resource.
type implementation struct {
	*crdVersion

	contract string
	file     *file
	doc      *bundle.Document
}

// location returns that of the CRD.
func (v implementation) location() place { return v.file.at(v.doc) }

// each returns a check of all implementations of a resource. It checks nothing if the provider's
// contract is unknown.
func each(r *resource, check func(implementation, reporter)) func(*parsedBundle, reporter) {
	return func(p *parsedBundle, report reporter) {
		for _, c := range p.crds {
			if c.Resource != r || c.IsTemplate || c.NameOnly {
				continue
			}

			implemented, name := c.Implementation(p.contract)
			if version := c.Version(name); version != nil {
				check(implementation{version, implemented, &p.componentsFile, c.doc}, report)
			}
		}
	}
}

// controlPlaneRules are the rules of the control plane contract that are about more than fields.
var controlPlaneRules = []rule{
	{
		Name:        "control-plane/status-subresource",
		Level:       contract.Warning,
		Contract:    controlPlane.URL("controlplane-replicas"),
		Requirement: "A control plane has the status subresource.",
		Why:         "Permission to write the spec includes the status, and controllers that use the subresource fail.",
		Remedy:      "Add the marker +kubebuilder:subresource:status.",
		Check: each(controlPlane, func(v implementation, report reporter) {
			if v.Subresource("status") == nil {
				report(v.location(), "version %s has no status subresource", v.Name)
			}
		}),
	},
	{
		Name:        "control-plane/scale",
		Level:       contract.Warning,
		Contract:    controlPlane.URL("controlplane-replicas"),
		Requirement: "A control plane with replicas has the contract's scale subresource.",
		Why:         "`kubectl scale` and autoscalers fail, or change a field that Cluster API does not read.",
		Remedy: "Add the marker +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas," +
			"selectorpath=.status.selector.",
		Check: each(controlPlane, checkScale),
	},
	{
		Name:        "control-plane/status-version",
		Level:       contract.Error,
		Contract:    controlPlane.URL("controlplane-version"),
		Requirement: "A control plane with spec.version has status.version, or status.versions in v1beta2.",
		Why: "Cluster API takes the control plane for one that is being created: MachineSets create no Machines, and the " +
			"workers of a ClusterClass are not upgraded.",
		Remedy: "Add the field to the status and set it.",
		Check:  each(controlPlane, checkStatusVersion),
	},
	{
		Name:        "control-plane/cni",
		Level:       contract.Warning,
		Contract:    controlPlane.Page,
		Requirement: "A control plane provider installs no CNI.",
		Why:         "Users choose the network, and two CNIs in one cluster break each other.",
		Remedy:      "Leave the CNI to the user, or to an addon provider.",
		Check:       checkCNI,
	},
}

// scalePaths are the paths that the contract requires of the scale subresource.
var scalePaths = []struct{ name, path string }{
	{"specReplicasPath", ".spec.replicas"},
	{"statusReplicasPath", ".status.replicas"},
	{"labelSelectorPath", ".status.selector"},
}

func checkScale(v implementation, report reporter) {
	if !v.HasReplicas() {
		return
	}

	scale := v.Subresource("scale")
	if scale == nil {
		report(v.location(), "version %s has replicas but no scale subresource", v.Name)
		return
	}

	for _, want := range scalePaths {
		if got := bundle.NestedString(scale, want.name); got != want.path {
			report(v.location(), "the scale subresource of version %s has the %s %q, expected %s",
				v.Name, want.name, got, want.path)
		}
	}
}

func checkStatusVersion(v implementation, report reporter) {
	reportsVersions := v.contract == "v1beta2" && v.Has("status.versions")
	if !v.Has("spec.version") || reportsVersions {
		return
	}

	if problem := v.Problem(field{Path: "status.version", Type: "string"}); problem != "" {
		report(v.location(), "version %s lacks %s", v.Name, problem)
	}
}

// cniImage matches the path elements of the images of well-known CNIs.
var cniImage = regexp.MustCompile(`^(calico|cilium|flannel|antrea|kindnet|kube-router|kube-ovn|multus|amazon-k8s-cni|` +
	`azure-cni|ovn-kube|weave-(kube|npc|net)$)`)

func checkCNI(p *parsedBundle, report reporter) {
	if p.Provider.Type != string(v1alpha2.ControlPlaneProviderType) {
		return
	}

	for _, w := range p.workloads {
		for _, container := range w.containers {
			image := bundle.NestedString(container, "image")

			named, err := reference.ParseNormalizedNamed(image)
			if err != nil {
				continue
			}

			if slices.ContainsFunc(strings.Split(reference.Path(named), "/"), cniImage.MatchString) {
				report(p.componentsFile.at(w.doc), "runs %s, which is a CNI", named.Name())
			}
		}
	}
}
