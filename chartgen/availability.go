package chartgen

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// singlePod returns why a Deployment, as published, cannot run two pods at the same time; empty if it can. Leader
// election is not part of it, because values can change its flag: see SingleManager.
func singlePod(spec map[string]any) string {
	pod := bundle.NestedMap(spec, "template", "spec")
	if pod["hostNetwork"] == true {
		return "its pods use the network of their node"
	}

	for _, container := range bundle.NestedMaps(pod, "containers") {
		for _, port := range bundle.NestedMaps(container, "ports") {
			if hostPort, set := port["hostPort"]; set && fmt.Sprint(hostPort) != "0" {
				return fmt.Sprintf("its container %v uses port %v of its node", container["name"], hostPort)
			}
		}
	}

	for _, volume := range bundle.NestedMaps(pod, "volumes") {
		if volume["persistentVolumeClaim"] != nil {
			return fmt.Sprintf("its volume %v is a PersistentVolumeClaim, which may allow only one pod", volume["name"])
		}

		if hasNodeData(volume) && !isReadOnly(pod, volume["name"]) {
			return fmt.Sprintf("its volume %v holds data of one node", volume["name"])
		}
	}

	return ""
}

// hasNodeData reports whether a volume is a file or folder of the node, other than the socket of a program.
func hasNodeData(volume map[string]any) bool {
	host := bundle.NestedMap(volume, "hostPath")
	path := strings.TrimPrefix(fmt.Sprint(host["path"]), "/var")

	return host != nil && host["type"] != "Socket" && !strings.HasPrefix(path, "/run/")
}

// isReadOnly reports whether no container of a pod can write to a volume.
func isReadOnly(pod map[string]any, volume any) bool {
	for _, list := range []string{"initContainers", "containers"} {
		for _, container := range bundle.NestedMaps(pod, list) {
			for _, mount := range bundle.NestedMaps(container, "volumeMounts") {
				if mount["name"] == volume && mount["readOnly"] != true {
					return false
				}
			}
		}
	}

	return true
}

var leaderElection = regexp.MustCompile(`^--?(?:leader-elect|enable-leader-election)(?:=(.*))?$`)

// electsLeader reports whether the arguments of a manager turn leader election on. Of several flags, the last counts.
func electsLeader(args []string) bool {
	elects := false

	for _, arg := range args {
		if match := leaderElection.FindStringSubmatch(arg); match != nil {
			elects = match[1] == "" || match[1] == "true"
		}
	}

	return elects
}

// SingleManager returns why a Deployment cannot run two pods at the same time; empty if it can. changes returns how
// values change a container: a command that replaces the published one, if any, and additional arguments.
func SingleManager(spec map[string]any, changes func(container string) (command, args []string)) string {
	if reason := singlePod(spec); reason != "" {
		return reason
	}

	for _, container := range bundle.NestedMaps(spec, "template", "spec", "containers") {
		command, more := changes(fmt.Sprint(container["name"]))
		if len(command) == 0 {
			command = texts(container["command"])
		}

		if electsLeader(slices.Concat(command, texts(container["args"]), more)) {
			return ""
		}
	}

	return "it has no leader election, so two managers would change the same objects"
}

// texts returns the elements of a list as text.
func texts(list any) []string {
	elements, _ := list.([]any)

	all := make([]string, 0, len(elements))
	for _, element := range elements {
		all = append(all, fmt.Sprint(element))
	}

	return all
}

// budgets are the PodDisruptionBudgets of a provider, as published.
type budgets []map[string]any

func budgetsOf(components *bundle.Components) budgets {
	var published budgets

	for i := range components.Documents {
		if object := components.Documents[i].Object; object.GetKind() == "PodDisruptionBudget" {
			published = append(published, object.Object)
		}
	}

	return published
}

// cover reports whether a Deployment has a budget already. A pod with two cannot be evicted.
func (b budgets) cover(name string, spec map[string]any) bool {
	pod := labels.Set{}
	for key, value := range bundle.NestedMap(spec, "template", "metadata", "labels") {
		pod[key] = fmt.Sprint(value)
	}

	for _, budget := range b {
		if bundle.NestedString(budget, "metadata", "name") == name {
			return true
		}

		selector := &metav1.LabelSelector{}
		content := bundle.NestedMap(budget, "spec", "selector")

		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, selector); err != nil {
			continue
		}

		selected, err := metav1.LabelSelectorAsSelector(selector)
		if err == nil && selected.Matches(pod) {
			return true
		}
	}

	return false
}
