package main

import (
	"cmp"
	"fmt"

	"github.com/Masterminds/semver/v3"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/operatorconfig"
)

// versions is the output of the command.
type versions struct {
	Client component `json:"client"`
	// Operator is nil if there is none, or it was not looked for.
	Operator *operator `json:"operator,omitempty"`
	// Warnings say what follows from differences.
	Warnings []string `json:"warnings,omitempty"`
}

// component is the version of a program.
type component struct {
	// Version is empty if it is unknown.
	Version string `json:"version,omitempty"`
	// ChartFormat is the version of the format in which the program builds charts; empty if it is unknown.
	ChartFormat string `json:"chartFormat,omitempty"`
}

// operator is the operator in the cluster.
type operator struct {
	component
	Namespace  string `json:"namespace"`
	Deployment string `json:"deployment"`
	Image      string `json:"image,omitempty"`
}

// newOperator reads the versions of the operator from its Deployment. The chart format is known unless the image is
// that of another version than the chart's.
func newOperator(d *appsv1.Deployment) *operator {
	o := &operator{Namespace: d.Namespace, Deployment: d.Name}

	if container := operatorconfig.Container(d); container != nil {
		o.Image = container.Image
	}

	o.Version = operatorconfig.Version(d)
	if o.Version == d.Labels[operatorconfig.VersionLabel] {
		o.ChartFormat = d.Annotations[v1alpha2.ChartFormatAnnotation]
	}

	return o
}

// compare sets the warnings. Patch releases of a minor version compute the same unless the chart format differs.
func (v *versions) compare() {
	if v.Operator == nil {
		return
	}

	own, theirs := minor(v.Client.Version), minor(v.Operator.Version)
	if own != "" && theirs != "" && own != theirs {
		v.Warnings = append(v.Warnings, fmt.Sprintf(
			"the operator has version %s and this program %s: what they compute may differ, and one may not know fields "+
				"that the other uses; use a program of version %s.x, or upgrade the operator",
			v.Operator.Version, v.Client.Version, theirs))
	}

	own, theirs = v.Client.ChartFormat, v.Operator.ChartFormat
	if theirs != "" && own != theirs {
		v.Warnings = append(v.Warnings, fmt.Sprintf(
			"the operator builds charts in format %s and this program in format %s: `capstan diff` shows differences that the "+
				"operator does not make, and charts that this program pushes have other digests",
			theirs, own))
	}
}

// minor returns the major and minor version of a version; empty if it is not semantic, such as that of a development
// build.
func minor(version string) string {
	v, err := semver.NewVersion(version)
	if err != nil {
		return ""
	}

	return fmt.Sprintf("v%d.%d", v.Major(), v.Minor())
}

// table returns the header and the rows for people.
func (v *versions) table() ([]string, []cli.Row) {
	row := func(name string, c component, place string) cli.Row {
		return cli.Row{Cells: []string{name, cmp.Or(c.Version, "unknown"), cmp.Or(c.ChartFormat, "unknown"), place}}
	}

	rows := []cli.Row{row("capstan", v.Client, "")}
	if v.Operator != nil {
		rows = append(rows, row("operator", v.Operator.component, v.Operator.Namespace+"/"+v.Operator.Deployment))
	}

	return []string{"PROGRAM", "VERSION", "CHART FORMAT", "DEPLOYMENT"}, rows
}
