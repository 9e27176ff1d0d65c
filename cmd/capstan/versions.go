package main

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers"
)

// versions is the output of the command.
type versions struct {
	Client cli.ProgramVersion `json:"client"`
	// Operator is nil if there is none, or it was not looked for.
	Operator *operator `json:"operator,omitempty"`
	// Warnings say what follows from differences.
	Warnings []string `json:"warnings,omitempty"`
}

// operator is the operator in the cluster.
type operator struct {
	cli.ProgramVersion
	Namespace  string `json:"namespace"`
	Deployment string `json:"deployment"`
	Image      string `json:"image,omitempty"`
}

// newOperator returns the operator of a Deployment, and what it has published; nil if nothing.
func newOperator(d *appsv1.Deployment, published *controllers.Published) *operator {
	return &operator{
		ProgramVersion: cli.OperatorVersion(d, published), Namespace: d.Namespace, Deployment: d.Name,
		Image: cli.OperatorImage(d),
	}
}

// compare sets the warnings.
func (v *versions) compare() {
	if v.Operator != nil {
		v.Warnings = v.Client.Differences(v.Operator.ProgramVersion)
	}
}

// table returns the header and the rows for people.
func (v *versions) table() ([]string, []cli.Row) {
	row := func(name string, c cli.ProgramVersion, place string) cli.Row {
		return cli.Row{Cells: []string{name, cmp.Or(c.Version, "unknown"), cmp.Or(c.ChartFormat, "unknown"), place}}
	}

	rows := []cli.Row{row("capstan", v.Client, "")}
	if v.Operator != nil {
		rows = append(rows, row("operator", v.Operator.ProgramVersion, v.Operator.Namespace+"/"+v.Operator.Deployment))
	}

	return []string{"PROGRAM", "VERSION", "CHART FORMAT", "DEPLOYMENT"}, rows
}
