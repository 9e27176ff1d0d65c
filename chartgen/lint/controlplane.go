package lint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint/contract"
)

// controlPlaneRules are the rules of the control plane contract that are about more than fields.
var controlPlaneRules = []Rule{
	{
		Name:        "control-plane/status-subresource",
		Level:       Error,
		Contract:    contract.ControlPlane.URL("controlplane-replicas"),
		Requirement: "The CRD of a control plane has the status subresource.",
		Why:         "Permission to write the spec includes the status, and controllers that update the status fail.",
		Remedy:      "Add the marker +kubebuilder:subresource:status.",
		check: each(contract.ControlPlane, func(v implementation, report reporter) {
			if v.Subresource("status") == nil {
				report(v.location(), "version %s has no status subresource", v.Name)
			}
		}),
	},
	{
		Name:        "control-plane/scale",
		Level:       Error,
		Contract:    contract.ControlPlane.URL("controlplane-replicas"),
		Requirement: "A control plane with replicas has the scale subresource with the paths of the contract.",
		Why:         "`kubectl scale` and autoscalers fail, or change a field that Cluster API does not read.",
		Remedy: "Add the marker +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas," +
			"selectorpath=.status.selector.",
		check: each(contract.ControlPlane, checkScale),
	},
	{
		Name:        "control-plane/status-version",
		Level:       Error,
		Contract:    contract.ControlPlane.URL("controlplane-version"),
		Requirement: "A control plane with spec.version has status.version, or status.versions in v1beta2.",
		Why:         "Cluster API cannot detect that an upgrade is complete, and workers of a ClusterClass wait for it.",
		Remedy:      "Add the field to the status and set it.",
		check:       each(contract.ControlPlane, checkStatusVersion),
	},
	{
		Name:        "control-plane/cni",
		Level:       Warning,
		Contract:    contract.ControlPlane.Page,
		Requirement: "A control plane provider installs no CNI.",
		Why:         "Users choose the network, and two CNIs in one cluster break each other.",
		Remedy:      "Leave the CNI to the user, or to an addon provider.",
		check:       checkCNI,
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

	if problem := v.Problem(contract.Field{Path: "status.version", Type: "string"}); problem != "" {
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
				report(p.componentsFile.at(w.doc, "image: "+image), "runs %s, which is a CNI", named.Name())
			}
		}
	}
}
