package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// controlPlaneRules are the rules of the control plane contract. They check the API version of a
// control plane's CRD that implements the provider's contract. The fields differ between v1beta1
// and v1beta2.
var controlPlaneRules = slices.Concat([]Rule{
	{
		Name:        "control-plane/template",
		Level:       Warning,
		Contract:    controlPlaneContract + "#controlplanetemplate-controlplanetemplatelist-resource-definition",
		Requirement: "A control plane has a CRD for its template, <kind>Template.",
		Why:         "No ClusterClass can use the control plane.",
		Remedy:      "Add the CRD of the template.",
		check:       checkTemplate,
	},
	{
		Name:        "control-plane/status-subresource",
		Level:       Error,
		Contract:    controlPlaneContract + "#controlplane-replicas",
		Requirement: "The CRD of a control plane has the status subresource.",
		Why:         "Permission to write the spec includes the status, and controllers that update the status fail.",
		Remedy:      "Add the marker +kubebuilder:subresource:status.",
		check: eachControlPlane(func(v controlPlane, report reporter) {
			if bundle.NestedMap(v.version, "subresources", "status") == nil {
				report(v.location, "version %s has no status subresource", v.name)
			}
		}),
	},
	{
		Name:        "control-plane/scale",
		Level:       Error,
		Contract:    controlPlaneContract + "#controlplane-replicas",
		Requirement: "A control plane with replicas has the scale subresource with the paths of the contract.",
		Why:         "`kubectl scale` and autoscalers fail, or change a field that Cluster API does not read.",
		Remedy: "Add the marker +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas," +
			"selectorpath=.status.selector.",
		check: eachControlPlane(checkScale),
	},
	{
		Name:        "control-plane/status-version",
		Level:       Error,
		Contract:    controlPlaneContract + "#controlplane-version",
		Requirement: "A control plane with spec.version has status.version, or status.versions in v1beta2.",
		Why:         "Cluster API cannot detect that an upgrade is complete, and workers of a ClusterClass wait for it.",
		Remedy:      "Add the field to the status and set it.",
		check:       eachControlPlane(checkStatusVersion),
	},
	{
		Name:        "control-plane/cni",
		Level:       Warning,
		Contract:    controlPlaneContract,
		Requirement: "A control plane provider installs no CNI.",
		Why:         "Users choose the network, and two CNIs in one cluster break each other.",
		Remedy:      "Leave the CNI to the user, or to an addon provider.",
		check:       checkCNI,
	},
}, fieldRules)

// controlPlane is the API version of a control plane's CRD that implements the provider's contract.
type controlPlane struct {
	crd
	name     string // of the version
	version  map[string]any
	contract string
	location location
}

// eachControlPlane returns a check of all control planes of a provider. It checks nothing if the
// provider's contract is unknown.
func eachControlPlane(check func(controlPlane, reporter)) func(*parsedBundle, reporter) {
	return func(p *parsedBundle, report reporter) {
		if p.contract != "v1beta1" && p.contract != "v1beta2" {
			return
		}

		for _, c := range p.crds {
			name := c.implements(p.contract)

			version := c.apiVersion(name)
			if version == nil || !p.isControlPlane(c) {
				continue
			}

			check(controlPlane{
				crd:      c,
				name:     name,
				version:  version,
				contract: p.contract,
				location: p.componentsFile.at(c.doc, "name: "+name),
			}, report)
		}
	}
}

// property returns the schema of a field, or nil if there is no such field. It is not known whether
// there is one if unknown fields are allowed, or if the components were parsed without schemas.
func (v controlPlane) property(path string) (schema map[string]any, known bool) {
	schema = bundle.NestedMap(v.version, "schema", "openAPIV3Schema")
	if schema == nil {
		return nil, false
	}

	for name := range strings.SplitSeq(path, ".") {
		next := bundle.NestedMap(schema, "properties", name)
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

// usesReplicas reports whether the control plane has replicas.
func (v controlPlane) usesReplicas() bool {
	scale := bundle.NestedMap(v.version, "subresources", "scale")

	return v.has("spec.replicas") || v.has("status.replicas") || scale != nil
}

func (v controlPlane) usesVersion() bool { return v.has("spec.version") }

// usesMachines reports whether the control plane consists of Machines. Managed control planes keep
// an empty machineTemplate for old versions of Cluster API that required it.
func (v controlPlane) usesMachines() bool {
	template, _ := v.property("spec.machineTemplate")
	return len(bundle.NestedMap(template, "properties")) > 0
}

func (v controlPlane) always() bool { return true }

func checkTemplate(p *parsedBundle, report reporter) {
	for _, c := range p.crds {
		if p.isContracted(c) && p.isControlPlane(c) && p.findCRD(c.group, c.kind+"Template") == nil {
			report(p.componentsFile.at(c.doc), "has no matching CRD of kind %sTemplate", c.kind)
		}
	}
}

// scalePaths are the paths that the contract requires of the scale subresource.
var scalePaths = []struct{ name, path string }{
	{"specReplicasPath", ".spec.replicas"},
	{"statusReplicasPath", ".status.replicas"},
	{"labelSelectorPath", ".status.selector"},
}

func checkScale(v controlPlane, report reporter) {
	if !v.usesReplicas() {
		return
	}

	scale := bundle.NestedMap(v.version, "subresources", "scale")
	if scale == nil {
		report(v.location, "version %s has replicas but no scale subresource", v.name)
		return
	}

	for _, want := range scalePaths {
		if got := nestedString(scale, want.name); got != want.path {
			report(v.location, "the scale subresource of version %s has the %s %q, expected %s",
				v.name, want.name, got, want.path)
		}
	}
}

func checkStatusVersion(v controlPlane, report reporter) {
	reportsVersions := v.contract == "v1beta2" && v.has("status.versions")
	if !v.usesVersion() || reportsVersions {
		return
	}

	if problem := v.problem(field{path: "status.version", kind: "string"}); problem != "" {
		report(v.location, "version %s lacks %s", v.name, problem)
	}
}

// cniImage matches the path elements of the images of well-known CNIs.
var cniImage = regexp.MustCompile(
	`^(calico|cilium|flannel|antrea|weave|kube-router|kube-ovn|multus|amazon-k8s-cni|azure-cni|ovn-kube)`,
)

func checkCNI(p *parsedBundle, report reporter) {
	if p.Provider.Type != string(v1alpha2.ControlPlaneProviderType) {
		return
	}

	for _, w := range p.workloads {
		for _, container := range w.containers {
			image := nestedString(container, "image")

			named, err := reference.ParseNormalizedNamed(image)
			if err != nil {
				continue
			}

			if slices.ContainsFunc(strings.Split(reference.Path(named), "/"), cniImage.MatchString) {
				report(p.componentsFile.at(w.doc, "image: "+image), "runs %s, which is a CNI", named.Name())
			}
		}
	}
}

// problem describes what is wrong with a field. It returns "" if the field is as required, or
// unknown.
func (v controlPlane) problem(f field) string {
	schema, known := v.property(f.path)

	switch {
	case !known, schema == nil && f.optional:
		return ""
	case schema == nil:
		return fmt.Sprintf("%s (%s)", f.path, f.kind)
	case nestedString(schema, "type") != f.kind:
		return fmt.Sprintf("%s of type %s (it has type %q)", f.path, f.kind, nestedString(schema, "type"))
	}

	return ""
}
