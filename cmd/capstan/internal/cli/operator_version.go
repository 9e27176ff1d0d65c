package cli

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-project/capstan/controllers"
)

// ProgramVersion is the version of a program.
type ProgramVersion struct {
	// Version is empty if it is unknown.
	Version string `json:"version,omitempty"`
	// ChartFormat is the version of the format in which the program builds charts; empty if it is unknown.
	ChartFormat string `json:"chartFormat,omitempty"`
}

// OperatorVersion returns the version that the operator has published. Without that, because it has not run yet, it is
// the version of the chart that its Deployment is from.
func OperatorVersion(deployment *appsv1.Deployment, published *controllers.Published) ProgramVersion {
	if published == nil {
		return ProgramVersion{Version: deployment.Labels["app.kubernetes.io/version"]}
	}

	return ProgramVersion{Version: published.Version, ChartFormat: published.ChartFormat}
}

// OperatorImage returns the image of the operator; empty if it is unknown.
func OperatorImage(deployment *appsv1.Deployment) string {
	containers := deployment.Spec.Template.Spec.Containers
	if i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "operator" }); i >= 0 {
		return containers[i].Image
	}

	return ""
}

// Differences says how the operator's results may differ from those of this program. Patch releases of a minor version
// compute the same unless the chart format differs.
func (p ProgramVersion) Differences(operator ProgramVersion) []string {
	var warnings []string

	own, theirs := minor(p.Version), minor(operator.Version)
	if own != "" && theirs != "" && own != theirs {
		warnings = append(warnings, fmt.Sprintf(
			"the operator has version %s and this program %s: what they compute may differ, and one may not know fields "+
				"that the other uses; use a program of version %s.x, or upgrade the operator",
			operator.Version, p.Version, theirs))
	}

	own, theirs = p.ChartFormat, operator.ChartFormat
	if theirs != "" && own != theirs {
		warnings = append(warnings, fmt.Sprintf(
			"the operator builds charts in format %s and this program in format %s: `capstan diff` shows differences that the "+
				"operator does not make, and charts that this program pushes have other digests",
			theirs, own))
	}

	return warnings
}

// minor returns the minor version, such as v1.2, of a version; empty if it is not semantic, such as that of a
// development build.
func minor(version string) string { return semver.MajorMinor("v" + strings.TrimPrefix(version, "v")) }
