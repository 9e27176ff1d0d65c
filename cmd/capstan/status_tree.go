package main

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// clear empties the terminal, so that what changes stays in its place.
const clear = "\x1b[H\x1b[2J"

// print shows providers as data or as trees; in full shows what is well, too, and again says that
// it was shown before.
func (o *statusOptions) print(views []providerView, full, again bool) error {
	if done, err := o.screen.data(views); done {
		return err
	}

	if o.watch && o.screen.colored {
		fmt.Fprint(o.screen, clear)
	} else if again {
		fmt.Fprintln(o.screen)
	}

	if len(views) == 0 {
		fmt.Fprintln(o.screen, "There are no providers.")
	}

	for _, v := range views {
		o.screen.tree(v.tree(full), "", "")
	}

	return nil
}

// readyWord is Ready in a word.
func readyWord(p v1alpha2.Provider) string {
	ready := conditions.Get(p, v1alpha2.ReadyCondition)
	switch {
	case ready == nil:
		return "Unknown"
	case ready.Status == metav1.ConditionTrue:
		return "Ready"
	default:
		return ready.Reason
	}
}

func (v providerView) tree(full bool) node {
	root := node{text: fmt.Sprintf("%s (%s %s/%s): %s", v.Label, v.Kind, v.Namespace, v.Name, v.Ready), style: yellow}
	if v.Ready == "Ready" {
		root.style = green
	}

	for _, stalled := range v.Conditions {
		if stalled.Type == v1alpha2.StalledCondition && stalled.Status == metav1.ConditionTrue {
			root.style = red
		}
	}

	root.nodes = append(root.nodes, node{text: v.versionLine()})
	for _, mode := range v.modes() {
		root.nodes = append(root.nodes, node{text: mode, style: yellow})
	}

	if v.Chart != nil {
		root.nodes = append(
			root.nodes,
			node{text: fmt.Sprintf("chart %s %s, %s", v.Chart.Name, v.Chart.Version, v.Chart.Digest)},
		)
	}

	root.nodes = append(root.nodes, v.releaseTree(full))
	if c := v.conditionsTree(full); len(c.nodes) > 0 {
		root.nodes = append(root.nodes, c)
	}

	return root
}

func (v providerView) versionLine() string {
	text := "version " + v.Version
	if v.Version == "" {
		text = "no version installed yet"
	}

	if v.Contract != "" {
		text += ", contract " + v.Contract
	}

	if v.Wanted != v.Version && v.Wanted != "" {
		text += "; wanted is " + v.Wanted
	}

	return text
}

// modes are what makes the provider stand still.
func (v providerView) modes() []string {
	var modes []string
	if v.Suspended {
		modes = append(modes, "suspended: the operator changes nothing")
	}

	if v.Paused {
		modes = append(modes, "paused: the provider's Deployments have no replicas")
	}

	if v.RollbackTo != nil {
		modes = append(modes, fmt.Sprintf("held at revision %d by spec.release.rollbackTo", *v.RollbackTo))
	}

	return modes
}

func (v providerView) releaseTree(full bool) node {
	if v.Release == nil {
		return node{text: "no release", style: yellow}
	}

	n := node{text: fmt.Sprintf("release %s, revision %d, %s", v.Release.Name, v.Release.Revision, v.Release.Status)}
	if v.Release.Status != "deployed" {
		n.style = yellow
	}

	well := 0

	for _, o := range v.Objects {
		if o.Status == status.CurrentStatus {
			well++
		}

		if full || o.Status != status.CurrentStatus {
			n.nodes = append(n.nodes, o.node())
		}
	}

	n.text += fmt.Sprintf(": %d of %d objects are well", well, len(v.Objects))

	return n
}

func (v objectView) node() node {
	name := v.Name
	if v.Namespace != "" {
		name = v.Namespace + "/" + name
	}

	n := node{text: fmt.Sprintf("%s %s: %s", v.Kind, name, v.Status), style: yellow}
	switch v.Status {
	case status.CurrentStatus:
		n.style = green
		return n
	case status.FailedStatus, status.NotFoundStatus:
		n.style = red
	}

	n.text += ": " + v.Message

	return n
}

// unwelcome are the conditions that are True when something is not as it should be.
var unwelcome = []string{
	v1alpha2.ReconcilingCondition,
	v1alpha2.StalledCondition,
	v1alpha2.DriftedCondition,
	v1alpha2.SourceChangedCondition,
}

// conditionsTree shows conditions, and unless in full only those that are not as they should be.
func (v providerView) conditionsTree(full bool) node {
	n := node{text: "conditions"}

	for _, c := range v.Conditions {
		good := (c.Status == metav1.ConditionTrue) != slices.Contains(unwelcome, c.Type)
		if good && !full {
			continue
		}

		line := node{
			text:  fmt.Sprintf("%s=%s (%s): %s", c.Type, c.Status, c.Reason, strings.TrimSpace(c.Message)),
			style: green,
		}
		if !good {
			line.style = yellow
		}

		n.nodes = append(n.nodes, line)
	}

	return n
}
