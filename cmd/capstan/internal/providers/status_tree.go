package providers

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// tree returns the provider as a tree. Without full, healthy objects and conditions are left out.
func (v providerView) tree(full bool) cli.Node {
	root := cli.Node{
		Text:  fmt.Sprintf("%s (%s %s/%s): %s", v.Label, v.Kind, v.Namespace, v.Name, v.Ready),
		Style: v.style(),
	}

	root.Add(cli.Plain, v.versionLine())

	for _, mode := range v.modes() {
		root.Add(cli.Yellow, mode)
	}

	if v.Chart != nil {
		root.Add(cli.Plain, fmt.Sprintf("chart %s %s, %s", v.Chart.Name, v.Chart.Version, v.Chart.Digest))
	}

	root.Children = append(root.Children, v.releaseTree(full))

	conditions := v.conditionsTree(full)
	if len(conditions.Children) > 0 {
		root.Children = append(root.Children, conditions)
	}

	return root
}

func (v providerView) style() cli.Style {
	stalled := slices.ContainsFunc(v.Conditions, func(c metav1.Condition) bool {
		return c.Type == v1alpha2.StalledCondition && c.Status == metav1.ConditionTrue
	})

	switch {
	case stalled:
		return cli.Red
	case v.Ready == "Ready":
		return cli.Green
	default:
		return cli.Yellow
	}
}

func (v providerView) versionLine() string {
	text := "version " + v.Version
	if v.Version == "" {
		text = "no version installed"
	}

	if v.Contract != "" {
		text += ", contract " + v.Contract
	}

	if v.Wanted != v.Version && v.Wanted != "" {
		text += "; spec.version is " + v.Wanted
	}

	return text
}

// modes returns the parts of the spec that keep the operator from its usual work.
func (v providerView) modes() []string {
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

	return modes
}

func (v providerView) releaseTree(full bool) cli.Node {
	if v.Release == nil {
		return cli.Node{Text: "no release", Style: cli.Yellow}
	}

	n := cli.Node{}
	if v.Release.Status != "deployed" {
		n.Style = cli.Yellow
	}

	healthy := 0

	for _, o := range v.Objects {
		isHealthy := o.Status == status.CurrentStatus
		if isHealthy {
			healthy++
		}

		if full || !isHealthy {
			n.Children = append(n.Children, o.node())
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

func (v objectView) node() cli.Node {
	name := v.Name
	if v.Namespace != "" {
		name = v.Namespace + "/" + name
	}

	n := cli.Node{Text: fmt.Sprintf("%s %s: %s", v.Kind, name, v.Status)}

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

// negativeConditions are the conditions that are True when something is wrong.
var negativeConditions = []string{
	v1alpha2.ReconcilingCondition,
	v1alpha2.StalledCondition,
	v1alpha2.DriftedCondition,
	v1alpha2.SourceChangedCondition,
	v1alpha2.ChangesPendingCondition,
	v1alpha2.InputsUnavailableCondition,
}

// conditionsTree returns the conditions, without full only those that report a problem.
func (v providerView) conditionsTree(full bool) cli.Node {
	n := cli.Node{Text: "conditions"}

	for _, c := range v.Conditions {
		isTrue := c.Status == metav1.ConditionTrue
		good := isTrue != slices.Contains(negativeConditions, c.Type)

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
