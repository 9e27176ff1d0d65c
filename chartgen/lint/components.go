package lint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

const labelProvider = "cluster.x-k8s.io/provider"

// componentRules are about the components as clusterctl reads them.
var componentRules = []Rule{
	{
		Name:        "components/valid",
		Level:       Error,
		Requirement: "001-14",
		Contract:    clusterctlContract + "#components-yaml",
		Demand:      "The components are one YAML file of Kubernetes objects, one Namespace at most, with variables that drone/envsubst understands.",
		Why:         "Nothing can read the file.",
		Remedy:      "Correct the file where the finding points.",
		check: func(r *release, report reporter) {
			if r.components.err != nil && len(r.Components) > 0 {
				at, reason := invalid(r.components.name, r.components.err)
				report(at, "%s", reason)
			}
		},
	},
	{
		Name:        "components/duplicate-object",
		Level:       Error,
		Requirement: "001-14",
		Contract:    clusterctlContract + "#components-yaml",
		Demand:      "The components hold each object once.",
		Why:         "The last one silently wins, and Helm refuses such a release.",
		Remedy:      "Remove one of the two.",
		check:       checkDuplicates,
	},
	{
		Name:        "components/namespace",
		Level:       Warning,
		Requirement: "001-19",
		Contract:    clusterctlContract + "#target-namespace",
		Demand:      "The components hold a Namespace, the provider's default one.",
		Why:         "clusterctl asks its user for --target-namespace.",
		Remedy:      "Add a Namespace object.",
		check: func(r *release, report reporter) {
			if len(r.components.documents) > 0 && len(r.objects("Namespace")) == 0 {
				report(r.components.whole(), "holds no Namespace")
			}
		},
	},
	{
		Name:        "components/target-namespace",
		Level:       Error,
		Requirement: "001-20",
		Contract:    clusterctlContract + "#target-namespace",
		Demand:      "All objects belong to the provider's own namespace.",
		Why:         "The installer moves every object to the target namespace, so this one will not be where it is needed.",
		Remedy:      "Put the object into the provider's namespace, or do without it.",
		check:       checkTargetNamespace,
	},
	{
		Name:        "components/manager",
		Level:       Error,
		Requirement: "001-21",
		Contract:    clusterctlContract + "#controllers--watching-namespace",
		Demand:      "The controllers run in a Deployment, in a container called manager.",
		Why:         "Whoever changes the manager's image, arguments or resources finds it by this name.",
		Remedy:      "Run the controllers in a Deployment and call their container manager.",
		check:       checkManager,
	},
	{
		Name:        "components/watch-namespace",
		Level:       Error,
		Requirement: "001-22",
		Contract:    clusterctlContract + "#controllers--watching-namespace",
		Demand:      "The manager is installed to watch all namespaces.",
		Why:         "Clusters in other namespaces are never reconciled.",
		Remedy:      "Leave the flag --namespace out, or empty.",
		check:       checkWatchNamespace,
	},
	{
		Name:        "components/image-name",
		Level:       Warning,
		Requirement: "001-23",
		Contract:    clusterctlContract + "#controllers--watching-namespace",
		Demand:      "Images have canonical names, with registry and path, and a version.",
		Why:         "A short name means what each node's container runtime makes of it, mirrors and image overrides do not match it, and a missing version floats.",
		Remedy:      "Write the name in full, for example registry.k8s.io/cluster-api/cluster-api-controller:v1.14.0.",
		check:       checkImages,
	},
	{
		Name:        "components/variable-prefix",
		Level:       Info,
		Requirement: "001-24",
		Contract:    clusterctlContract + "#variables",
		Demand:      "Variables begin with the provider's name.",
		Why:         "All providers of a management cluster share one set of variables, so another provider's may have the same name.",
		Remedy:      "Give new variables the prefix; do not rename those that users set already.",
		check:       checkVariablePrefix,
	},
	{
		Name:        "components/variable-spaces",
		Level:       Warning,
		Requirement: "001-25",
		Contract:    clusterctlContract + "#variables",
		Demand:      "Variables are written without spaces inside the braces.",
		Why:         "Only clusterctl's own preprocessing makes ${ VAR } work; other tools for the same syntax reject it.",
		Remedy:      "Write ${VAR}.",
		check:       checkVariableSpaces,
	},
	{
		Name: "components/provider-label", Level: Warning, Requirement: "001-28", Contract: clusterctlContract + "#labels",
		Demand: "All objects carry the label " + labelProvider + " with the provider's label.",
		Why:    "Objects applied with kubectl are not recognised when clusterctl or an operator takes the provider over.",
		Remedy: "Set the label on all objects, for example with the labels of a kustomization.yaml.",
		check:  checkProviderLabel,
	},
}

func checkDuplicates(r *release, report reporter) {
	seen := map[[4]string]*bundle.Document{}

	for i := range r.components.documents {
		doc := &r.components.documents[i]
		gvk := doc.Object.GroupVersionKind()

		id := [4]string{gvk.Group, gvk.Kind, doc.Object.GetNamespace(), doc.Object.GetName()}
		if first := seen[id]; first == nil {
			seen[id] = doc
		} else if !open(strings.Join(id[:], "")) {
			report(r.components.at(doc), "is there already, on line %d", first.Line)
		}
	}
}

func checkTargetNamespace(r *release, report reporter) {
	target := ""
	for _, doc := range r.objects("Namespace") {
		target = doc.Object.GetName()
	}

	for i := range r.components.documents {
		doc := &r.components.documents[i]

		namespace := doc.Object.GetNamespace()
		if namespace == "" || open(namespace) || open(target) {
			continue
		}

		if target = cmp.Or(target, namespace); namespace != target {
			report(r.components.at(doc, "namespace: "+namespace), "is in namespace %s, the provider's is %s", namespace, target)
		}
	}
}

// managers are the workloads with a container called manager.
func (r *release) managers() []workload {
	return slices.DeleteFunc(r.workloads(), func(w workload) bool {
		return !slices.ContainsFunc(mappings(w.pod, "containers"), isManager)
	})
}

func isManager(container map[string]any) bool { return text(container, "name") == "manager" }

func checkManager(r *release, report reporter) {
	managers := r.managers()
	for _, w := range managers {
		if kind := w.doc.Object.GetKind(); kind != "Deployment" {
			report(r.components.at(w.doc), "runs the manager in a %s, not in a Deployment", kind)
		}
	}

	deployments := r.objects("Deployment")
	switch {
	case len(managers) > 0 || len(r.components.documents) == 0:
	case len(deployments) == 0:
		report(r.components.whole(), "holds no Deployment")
	default:
		report(r.components.at(deployments[0]), "has no container called manager, and neither has any other Deployment")
	}
}

func checkWatchNamespace(r *release, report reporter) {
	for _, w := range r.managers() {
		for _, container := range mappings(w.pod, "containers") {
			if !isManager(container) {
				continue
			}

			args := slices.Concat(texts(container, "command"), texts(container, "args"))
			if namespace := flag(args, "namespace"); namespace != "" && !open(namespace) {
				report(r.components.at(w.doc, "-namespace"), "watches the namespace %s alone", namespace)
			}
		}
	}
}

// flag is the value of a command line flag, the last one if there are several, as Go's flag
// packages read them.
func flag(args []string, name string) (flagValue string) {
	for i, arg := range args {
		key, v, hasValue := strings.Cut(arg, "=")
		if key != "--"+name && key != "-"+name {
			continue
		}

		if !hasValue && i+1 < len(args) {
			v = args[i+1]
		}

		flagValue = strings.Trim(v, `"'`)
	}

	return flagValue
}

func checkImages(r *release, report reporter) {
	for _, w := range r.workloads() {
		for _, container := range w.containers() {
			image := text(container, "image")
			if image == "" || open(image) {
				continue
			}

			if problem := imageProblem(image); problem != "" {
				report(
					r.components.at(w.doc, "image: "+image),
					"the image %s of container %s %s",
					image,
					text(container, "name"),
					problem,
				)
			}
		}
	}
}

// imageProblem says why an image's name is not canonical, or "".
func imageProblem(image string) string {
	named, err := reference.ParseNamed(image)
	if err != nil {
		return "has no canonical name"
	}

	_, digested := named.(reference.Digested)

	tagged, ok := named.(reference.Tagged)
	if !digested && (!ok || tagged.Tag() == "latest") {
		return "has no version"
	}

	return ""
}

// checkVariablePrefix leaves out the names that providers share on purpose: EXP_* and
// CLUSTER_TOPOLOGY are feature gates that are to be on in all or in none, and CAP…_ or CA…_ is the
// acronym of one provider (CAPA_, CAAPH_).
func checkVariablePrefix(r *release, report reporter) {
	if r.Provider.Type == string(v1alpha2.CoreProviderType) {
		return
	}

	prefix := strings.ToUpper(strings.ReplaceAll(r.Provider.Name, "-", "_")) + "_"

	var others []string

	line := 0

	for _, v := range r.components.variables {
		acronym, _, _ := strings.Cut(v.Name, "_")
		if strings.HasPrefix(v.Name, prefix) || strings.HasPrefix(acronym, "CA") || acronym == "EXP" ||
			v.Name == "CLUSTER_TOPOLOGY" {
			continue
		}

		others = append(others, v.Name)
		if line == 0 || v.Lines[0] < line {
			line = v.Lines[0]
		}
	}

	if others != nil {
		report(
			place{file: r.components.name, line: line},
			"uses %s without the prefix %s: %s",
			count(len(others), "variable"),
			prefix,
			strings.Join(others, ", "),
		)
	}
}

func checkVariableSpaces(r *release, report reporter) {
	for i, line := range r.components.lines {
		for rest := line; ; {
			before, after, found := strings.Cut(rest, "${")
			if !found {
				break
			}

			inside, _, closed := strings.Cut(after, "}")
			if closed && !strings.HasSuffix(before, "$") && spaced(inside) {
				report(place{file: r.components.name, line: i + 1}, "${%s} has spaces inside the braces", inside)
			}

			rest = after
		}
	}
}

// spaced reports whether an expression is a bare name with spaces around it.
func spaced(expression string) bool {
	name := strings.TrimSpace(expression)
	return name != expression && name != "" && !strings.ContainsAny(name, " \t${:=-+?/#%^,")
}

func checkProviderLabel(r *release, report reporter) {
	wrong := map[string][]*bundle.Document{}

	for i := range r.components.documents {
		doc := &r.components.documents[i]
		if label := doc.Object.GetLabels()[labelProvider]; label != r.Provider.Label && !open(label) {
			wrong[label] = append(wrong[label], doc)
		}
	}

	for _, label := range slices.Sorted(maps.Keys(wrong)) {
		found := "has no label " + labelProvider
		if label != "" {
			found = fmt.Sprintf("has the label %s=%s", labelProvider, label)
		}

		r.components.each(report, wrong[label], labelProvider, "%s (expected %s)", found, r.Provider.Label)
	}
}
