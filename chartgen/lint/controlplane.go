package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// controlPlaneRules are the contract of control planes, checked on the API version that a control
// plane's CRD offers for the provider's contract. Where v1beta1 and v1beta2 differ, each has its
// own fields.
var controlPlaneRules = slices.Concat([]Rule{
	{
		Name:        "control-plane/template",
		Level:       Warning,
		Requirement: "002-02",
		Contract:    controlPlaneContract + "#controlplanetemplate-controlplanetemplatelist-resource-definition",
		Demand:      "A control plane has a CRD for its template, <kind>Template.",
		Why:         "No ClusterClass can use the control plane.",
		Remedy:      "Add the template's CRD.",
		check:       checkTemplate,
	},
	{
		Name:        "control-plane/status-subresource",
		Level:       Error,
		Requirement: "002-05",
		Contract:    controlPlaneContract + "#controlplane-replicas",
		Demand:      "The CRD of a control plane has the status subresource.",
		Why:         "Whoever may write the spec may write the status, and controllers that update the status fail.",
		Remedy:      "Add the marker +kubebuilder:subresource:status.",
		check: eachControlPlane(func(v controlPlane, report reporter) {
			if mapping(v.version, "subresources", "status") == nil {
				report(v.place, "version %s has no status subresource", v.name)
			}
		}),
	},
	{
		Name:        "control-plane/scale",
		Level:       Error,
		Requirement: "002-04",
		Contract:    controlPlaneContract + "#controlplane-replicas",
		Demand:      "A control plane with replicas has the scale subresource with the contract's paths.",
		Why:         "`kubectl scale` and autoscalers do not work, or change another field than the one Cluster API reads.",
		Remedy:      "Add the marker +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector.",
		check:       eachControlPlane(checkScale),
	},
	{
		Name:        "control-plane/status-version",
		Level:       Error,
		Requirement: "002-19",
		Contract:    controlPlaneContract + "#controlplane-version",
		Demand:      "A control plane with spec.version reports status.version, or with v1beta2 status.versions.",
		Why:         "Cluster API never sees that an upgrade is done, and workers of a ClusterClass wait for it.",
		Remedy:      "Add the field to the status and set it.",
		check:       eachControlPlane(checkStatusVersion),
	},
	{
		Name: "control-plane/cni", Level: Warning, Requirement: "002-24", Contract: controlPlaneContract,
		Demand: "A control plane provider installs no CNI.",
		Why:    "The network is the user's choice, and two of them break each other.",
		Remedy: "Leave the CNI to the user, or to an addon provider.",
		check:  checkCNI,
	},
}, fieldRules)

// controlPlane is the API version of a control plane's CRD that implements the provider's contract.
type controlPlane struct {
	crd
	name     string // of the version
	version  map[string]any
	contract string
	place    place
}

// eachControlPlane makes a check of all control planes of a provider with a contract that is known
// here.
func eachControlPlane(check func(controlPlane, reporter)) func(*release, reporter) {
	return func(r *release, report reporter) {
		if r.contract != "v1beta1" && r.contract != "v1beta2" {
			return
		}

		for _, c := range r.crds {
			name := c.implements(r.contract)
			if version := c.apiVersion(name); version != nil && r.isControlPlane(c) {
				check(controlPlane{c, name, version, r.contract, r.components.at(c.doc, "name: "+name)}, report)
			}
		}
	}
}

// property is the schema of a field; known is false when nothing can be said of it: the field is
// free to be anything, or the components were read without schemas.
func (v controlPlane) property(path string) (schema map[string]any, known bool) {
	schema = mapping(v.version, "schema", "openAPIV3Schema")
	if schema == nil {
		return nil, false
	}

	for name := range strings.SplitSeq(path, ".") {
		next := mapping(schema, "properties", name)
		if next == nil {
			return nil, schema["x-kubernetes-preserve-unknown-fields"] != true
		}

		schema = next
	}

	return schema, true
}

func (v controlPlane) has(path string) bool {
	schema, _ := v.property(path)
	return schema != nil
}

// usesReplicas reports whether the control plane has a notion of a number of instances.
func (v controlPlane) usesReplicas() bool {
	return v.has("spec.replicas") || v.has("status.replicas") || mapping(v.version, "subresources", "scale") != nil
}

func (v controlPlane) usesVersion() bool { return v.has("spec.version") }

// usesMachines reports whether the control plane consists of Machines. Managed ones keep an empty
// machineTemplate, for old versions of Cluster API that looked for it.
func (v controlPlane) usesMachines() bool {
	template, _ := v.property("spec.machineTemplate")
	return len(mapping(template, "properties")) > 0
}

func (v controlPlane) always() bool { return true }

func checkTemplate(r *release, report reporter) {
	for _, c := range r.crds {
		if r.isContracted(c) && r.isControlPlane(c) && r.crd(c.group, c.kind+"Template") == nil {
			report(r.components.at(c.doc), "has no CRD of kind %sTemplate beside it", c.kind)
		}
	}
}

// scalePaths are the paths of the scale subresource.
var scalePaths = [][2]string{
	{
		"specReplicasPath",
		".spec.replicas",
	},
	{"statusReplicasPath", ".status.replicas"},
	{"labelSelectorPath", ".status.selector"},
}

func checkScale(v controlPlane, report reporter) {
	if !v.usesReplicas() {
		return
	}

	scale := mapping(v.version, "subresources", "scale")
	if scale == nil {
		report(v.place, "version %s has replicas and no scale subresource", v.name)
		return
	}

	for _, p := range scalePaths {
		if got := text(scale, p[0]); got != p[1] {
			report(v.place, "the scale subresource of version %s has the %s %q, expected %s", v.name, p[0], got, p[1])
		}
	}
}

func checkStatusVersion(v controlPlane, report reporter) {
	if !v.usesVersion() || v.contract == "v1beta2" && v.has("status.versions") {
		return
	}

	if problem := v.problem(field{path: "status.version", kind: "string"}); problem != "" {
		report(v.place, "version %s lacks %s", v.name, problem)
	}
}

// cniImage finds the images of well-known CNIs by the parts of their paths.
var cniImage = regexp.MustCompile(
	`^(calico|cilium|flannel|antrea|weave|kube-router|kube-ovn|multus|amazon-k8s-cni|azure-cni|ovn-kube)`,
)

func checkCNI(r *release, report reporter) {
	if r.Provider.Type != string(v1alpha2.ControlPlaneProviderType) {
		return
	}

	for _, w := range r.workloads() {
		for _, container := range w.containers() {
			named, err := reference.ParseNormalizedNamed(text(container, "image"))
			if err != nil {
				continue
			}

			if slices.ContainsFunc(strings.Split(reference.Path(named), "/"), cniImage.MatchString) {
				report(r.components.at(w.doc, "image: "+text(container, "image")), "runs %s, which is a CNI", named.Name())
			}
		}
	}
}

// problem says what is wrong with a field, or "".
func (v controlPlane) problem(f field) string {
	schema, known := v.property(f.path)
	switch {
	case !known, schema == nil && f.optional:
		return ""
	case schema == nil:
		return fmt.Sprintf("%s (%s)", f.path, f.kind)
	case text(schema, "type") != f.kind:
		return fmt.Sprintf("%s of type %s (it has type %q)", f.path, f.kind, text(schema, "type"))
	}

	return ""
}
