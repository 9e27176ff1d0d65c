package providers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/object"
)

// tree returns the provider as a tree: the verdict and its cause, then what runs, then what needs attention. Each cause
// is shown once, and what is as it should be is only counted.
func tree(v view.Provider) cli.Node {
	root := cli.Node{
		Text:  v.Label + ": " + v.Verdict.Text,
		Style: style(v),
	}

	if v.Verdict.Cause != "" {
		root.Add(style(v), v.Verdict.Cause)
	}

	root.Add(cli.Plain, versionLine(v))
	root.Add(cli.Plain, fmt.Sprintf("resource %s %s/%s", v.Kind, v.Namespace, v.Name))

	for _, mode := range modes(v) {
		root.Add(cli.Yellow, mode)
	}

	if v.Cluster != "" {
		root.Add(cli.Plain, "in another cluster, by the kubeconfig in Secret "+v.Cluster)
	}

	if len(v.DependsOn) > 0 {
		root.Add(cli.Plain, "depends on "+strings.Join(v.DependsOn, ", "))
	}

	root.Children = append(root.Children, releaseTree(v))
	root.Children = appendTree(root.Children, "conditions", cli.Yellow, conditionLines(v))

	if v.Details != nil {
		root.Children = append(root.Children, detailTrees(v, time.Now())...)
	}

	return root
}

// appendTree appends a tree with lines, unless there are none. A single one needs no branch.
func appendTree(trees []cli.Node, text string, style cli.Style, lines []string) []cli.Node {
	switch len(lines) {
	case 0:
		return trees
	case 1:
		return append(trees, cli.Node{Text: text + ": " + lines[0], Style: style})
	}

	n := cli.Node{Text: text}
	for _, line := range lines {
		n.Add(style, line)
	}

	return append(trees, n)
}

// style returns that of a provider.
func style(v view.Provider) cli.Style {
	return cmp.Or(map[view.State]cli.Style{view.Failing: cli.Red, view.Ready: cli.Green}[v.Verdict.State], cli.Yellow)
}

func versionLine(v view.Provider) string {
	text := "version " + v.Version
	if v.Version == "" {
		text = "no version installed"
	}

	if chosen := v.Range(); chosen != "" {
		text += ", chosen from " + chosen
	}

	if v.Contract != "" {
		text += ", contract " + v.Contract
	}

	if asks := v.Asks(); asks != "" {
		text += "; wanted is " + asks
	}

	return text
}

// modes returns what keeps the operator from its usual work as far as the verdict may not say it, what has no effect,
// and what automatic upgrades wait for.
func modes(v view.Provider) []string {
	var modes []string

	if v.Paused {
		modes = append(modes, "paused: the provider's Deployments are scaled to zero")
	}

	for _, note := range v.Notes() {
		if !strings.Contains(v.Verdict.Text, note.Text) {
			modes = append(modes, note.Text)
		}
	}

	return modes
}

// releaseTree returns the release with those of its objects that are not healthy.
func releaseTree(v view.Provider) cli.Node {
	if v.Release == nil {
		return cli.Node{Text: "no release", Style: cli.Yellow}
	}

	n := cli.Node{}
	if v.Release.Status != "deployed" {
		n.Style = cli.Yellow
	}

	for _, o := range v.Objects {
		if o.IsHealthy() {
			continue
		}

		style := cli.Yellow
		if o.Status == status.FailedStatus || o.Status == status.NotFoundStatus {
			style = cli.Red
		}

		n.Add(style, fmt.Sprintf("%s %s: %s: %s", o.Kind, o.FullName(), o.Status, o.Message))
	}

	n.Text = fmt.Sprintf("release %s, revision %d, %s", v.Release.Name, v.Release.Revision, v.Release.Status)
	if !v.Remote {
		n.Text += fmt.Sprintf(": %d of %s healthy", len(v.Objects)-len(n.Children), object.Count(len(v.Objects), "object"))
	}

	if len(v.Unread) > 0 {
		n.Text += ", besides those that you may not get: " + strings.Join(v.Unread, ", ")
	}

	return n
}

// conditionLines returns the conditions that report a problem which is in neither the verdict nor Ready. Those with the
// same message are one line.
func conditionLines(v view.Provider) []string {
	said := []string{v.Verdict.String(), v1alpha2.FindCondition(v.Conditions, v1alpha2.ReadyCondition).Message}

	var lines []string

	for _, c := range v.Conditions {
		repeats := slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, c.Message) })
		if view.IsGood(c) || repeats {
			continue
		}

		said = append(said, c.Message)
		lines = append(lines, fmt.Sprintf("%s=%s (%s): %s", c.Type, c.Status, c.Reason, strings.TrimSpace(c.Message)))
	}

	return lines
}

// detailTrees returns a tree for each kind of details that there are.
func detailTrees(v view.Provider, now time.Time) []cli.Node {
	d := v.Details

	var trees []cli.Node

	trees = appendTree(trees, "available upgrades", cli.Green, upgradeLines(v.Upgrades))
	trees = appendTree(trees, "source", cli.Plain, sourceLines(v))
	trees = appendTree(trees, "images", cli.Plain, d.Images)
	trees = appendTree(trees, "variables", cli.Plain, variableLines(d.Variables))

	if len(d.CRDs) > 0 {
		trees = append(trees, crdTree(d.CRDs))
	}

	trees = appendTree(trees, "events", cli.Plain, eventLines(v, now))

	return appendTree(trees, "unknown", cli.Yellow, d.Unknown)
}

func age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}

	return duration.HumanDuration(now.Sub(since))
}

func upgradeLines(upgrades []v1alpha2.AvailableUpgrade) []string {
	return cli.Map(upgrades, func(u v1alpha2.AvailableUpgrade) string { return u.Version + ", contract " + u.Contract })
}

// sourceLines returns where the chart of the wanted version comes from, and what its source must have.
func sourceLines(v view.Provider) []string {
	var lines []string

	if v.Chart != nil && v.Chart.Source != "" {
		line := fmt.Sprintf("%s from %s", v.Chart.Version, v.Chart.Source)
		if "v"+v.Chart.Version != v.Version {
			line += ", which is wanted"
		}

		lines = append(lines, line)
	}

	for _, requirement := range v.Details.Trust {
		lines = append(lines, "requires a "+requirement)
	}

	return lines
}

func variableLines(variables []view.Variable) []string {
	return cli.Map(variables, func(v view.Variable) string {
		if v.From == "" {
			return v.Name + " is missing"
		}

		return v.Name + " from " + v.From
	})
}

// crdTree returns the number of CRDs, and those with objects that may be stored in an old version.
func crdTree(crds []view.CRD) cli.Node {
	n := cli.Node{Text: object.Count(len(crds), "CRD")}

	for _, c := range crds {
		if !c.Migrated() {
			n.Add(cli.Yellow, fmt.Sprintf("%s: stores %s; objects may be stored in %s",
				c.Name, c.Storage, strings.Join(c.Stored, ", ")))
		}
	}

	return n
}

// eventLines returns the newest event of each reason. What is shown above is not repeated.
func eventLines(v view.Provider, now time.Time) []string {
	count := map[string]int32{}
	for _, e := range v.Details.Events {
		count[e.Reason] += e.Count
	}

	var lines []string

	for _, e := range v.Details.Events { // newest first
		times := count[e.Reason]
		if times == 0 {
			continue
		}

		count[e.Reason] = 0

		line := fmt.Sprintf("%s ago: %s", age(e.Time.Time, now), e.Reason)
		if times > 1 {
			line += fmt.Sprintf(" (%d times)", times)
		}

		repeats := strings.Contains(strings.Join(v.Ignored, "; "), e.Message) || slices.ContainsFunc(
			v.Conditions, func(c metav1.Condition) bool { return strings.Contains(c.Message, e.Message) })
		if !repeats {
			line += ": " + e.Message
		}

		lines = append(lines, line)
	}

	return lines
}
