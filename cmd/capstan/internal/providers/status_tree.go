package providers

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// tree returns the provider as a tree. Without full, healthy objects and conditions are left out.
func tree(v view.Provider, full bool) cli.Node {
	root := cli.Node{
		Text:  fmt.Sprintf("%s (%s %s/%s): %s", v.Label, v.Kind, v.Namespace, v.Name, v.Ready),
		Style: style(v),
	}

	root.Add(cli.Plain, versionLine(v))

	for _, mode := range modes(v) {
		root.Add(cli.Yellow, mode)
	}

	if v.Cluster != "" {
		root.Add(cli.Plain, "in another cluster, by the kubeconfig in Secret "+v.Cluster)
	}

	if len(v.DependsOn) > 0 {
		root.Add(cli.Plain, "depends on "+strings.Join(v.DependsOn, ", "))
	}

	if v.Chart != nil {
		root.Add(cli.Plain, fmt.Sprintf("chart %s %s, %s", v.Chart.Name, v.Chart.Version, v.Chart.Digest))
	}

	root.Children = append(root.Children, releaseTree(v, full))

	conditions := conditionsTree(v, full)
	if len(conditions.Children) > 0 {
		root.Children = append(root.Children, conditions)
	}

	root.Children = append(root.Children, detailTrees(v, time.Now())...)

	return root
}

func style(v view.Provider) cli.Style {
	switch {
	case v.Is(v1alpha2.StalledCondition):
		return cli.Red
	case v.Ready == "Ready":
		return cli.Green
	default:
		return cli.Yellow
	}
}

func versionLine(v view.Provider) string {
	text := "version " + v.Version
	if v.Version == "" {
		text = "no version installed"
	}

	if v.Contract != "" {
		text += ", contract " + v.Contract
	}

	if asks := v.Asks(); asks != "" {
		text += "; spec.version is " + asks
	}

	return text
}

// modes returns the parts of the spec that keep the operator from its usual work, and what automatic upgrades wait
// for.
func modes(v view.Provider) []string {
	var modes []string

	if v.Suspended {
		modes = append(modes, "suspended: the operator changes nothing")
	}

	if v.Paused {
		modes = append(modes, "paused: the provider's Deployments are scaled to zero")
	}

	if v.RollbackTo != nil {
		modes = append(modes, fmt.Sprintf("held at revision %d by spec.release.rollbackTo", *v.RollbackTo))
	}

	for _, note := range v.AutomaticUpgrades() {
		modes = append(modes, note.Text)
	}

	return modes
}

func releaseTree(v view.Provider, full bool) cli.Node {
	if v.Release == nil {
		return cli.Node{Text: "no release", Style: cli.Yellow}
	}

	n := cli.Node{}
	if v.Release.Status != "deployed" {
		n.Style = cli.Yellow
	}

	healthy := 0

	for _, o := range v.Objects {
		if o.IsHealthy() {
			healthy++
		}

		if full || !o.IsHealthy() {
			n.Children = append(n.Children, objectNode(o))
		}
	}

	n.Text = fmt.Sprintf(
		"release %s, revision %d, %s: %d of %s healthy",
		v.Release.Name,
		v.Release.Revision,
		v.Release.Status,
		healthy,
		cli.Count(len(v.Objects), "object"),
	)

	return n
}

func objectNode(v view.Object) cli.Node {
	n := cli.Node{Text: fmt.Sprintf("%s %s: %s", v.Kind, v.FullName(), v.Status)}

	switch v.Status {
	case status.CurrentStatus:
		n.Style = cli.Green
		return n
	case status.FailedStatus, status.NotFoundStatus:
		n.Style = cli.Red
	default:
		n.Style = cli.Yellow
	}

	n.Text += ": " + v.Message

	return n
}

// conditionsTree returns the conditions, without full only those that report a problem.
func conditionsTree(v view.Provider, full bool) cli.Node {
	n := cli.Node{Text: "conditions"}

	for _, c := range v.Conditions {
		good := view.IsGood(c)
		if good && !full {
			continue
		}

		style := cli.Yellow
		if good {
			style = cli.Green
		}

		n.Add(style, fmt.Sprintf("%s=%s (%s): %s", c.Type, c.Status, c.Reason, strings.TrimSpace(c.Message)))
	}

	return n
}
