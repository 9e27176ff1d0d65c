package providers

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// detailTrees returns a tree for each kind of details that there are. There are none unless a single provider is shown.
func detailTrees(v view.Provider, now time.Time) []cli.Node {
	d := v.Details
	if d == nil {
		return nil
	}

	var trees []cli.Node

	add := func(text string, style cli.Style, lines []string) {
		n := cli.Node{Text: text}
		for _, line := range lines {
			n.Add(style, line)
		}

		if len(lines) > 0 {
			trees = append(trees, n)
		}
	}

	if !v.Created.IsZero() {
		trees = append(trees, cli.Node{Text: "created " + age(v.Created.Time, now) + " ago"})
	}

	add("available upgrades", cli.Green, upgradeLines(v.Upgrades))
	add("source", cli.Plain, sourceLines(v))
	add("images", cli.Plain, d.Images)
	add("variables", cli.Plain, variableLines(d.Variables))
	add("CRDs", cli.Plain, crdLines(d.CRDs))
	add("events", cli.Plain, eventLines(d.Events, now))
	add("unknown", cli.Yellow, d.Unknown)

	return trees
}

func age(since, now time.Time) string { return duration.HumanDuration(now.Sub(since)) }

func upgradeLines(upgrades []v1alpha2.AvailableUpgrade) []string {
	lines := make([]string, 0, len(upgrades))
	for _, u := range upgrades {
		lines = append(lines, u.Version+", contract "+u.Contract)
	}

	return lines
}

// sourceLines returns where the chart comes from, where it is stored, and what its source must have.
func sourceLines(v view.Provider) []string {
	var lines []string

	if v.Chart != nil && v.Chart.Source != "" {
		lines = append(lines, v.Chart.Source)
	}

	if v.Chart != nil && v.Chart.Reference != "" {
		lines = append(lines, "stored in "+v.Chart.Reference)
	}

	for _, requirement := range v.Details.Trust {
		lines = append(lines, "requires a "+requirement)
	}

	return lines
}

func variableLines(variables []view.Variable) []string {
	lines := make([]string, 0, len(variables))

	for _, v := range variables {
		if v.From == "" {
			lines = append(lines, v.Name+" is missing")
		} else {
			lines = append(lines, v.Name+" from "+v.From)
		}
	}

	return lines
}

func crdLines(crds []view.CRD) []string {
	lines := make([]string, 0, len(crds))

	for _, c := range crds {
		line := fmt.Sprintf("%s: serves %s, stores %s", c.Name, strings.Join(c.Served, ", "), c.Storage)
		if !c.Migrated() {
			line += "; objects may be stored in " + strings.Join(c.Stored, ", ")
		}

		lines = append(lines, line)
	}

	return lines
}

func eventLines(events []view.Event, now time.Time) []string {
	lines := make([]string, 0, len(events))

	for _, e := range events {
		line := fmt.Sprintf("%s ago: %s %s: %s", age(e.Time.Time, now), e.Type, e.Reason, e.Message)
		if e.Count > 1 {
			line += fmt.Sprintf(" (%d times)", e.Count)
		}

		lines = append(lines, line)
	}

	return lines
}
