package lint

import (
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// managers returns the workloads with a container named manager.
func (p *parsedBundle) managers() []workload {
	var managers []workload

	for _, w := range p.workloads {
		if slices.ContainsFunc(bundle.NestedMaps(w.podSpec, "containers"), isManager) {
			managers = append(managers, w)
		}
	}

	return managers
}

func isManager(container map[string]any) bool { return nestedString(container, "name") == "manager" }

func checkManager(p *parsedBundle, report reporter) {
	managers := p.managers()

	for _, w := range managers {
		if kind := w.doc.Object.GetKind(); kind != "Deployment" {
			report(p.componentsFile.at(w.doc), "runs the manager in a %s instead of a Deployment", kind)
		}
	}

	deployments := p.objects("Deployment")

	switch {
	case len(managers) > 0 || len(p.componentsFile.documents) == 0:
	case len(deployments) == 0:
		report(p.componentsFile.whole(), "contains no Deployment")
	default:
		report(p.componentsFile.at(deployments[0]), "has no container named manager, and neither does any other Deployment")
	}
}

func checkWatchNamespace(p *parsedBundle, report reporter) {
	for _, w := range p.managers() {
		for _, container := range bundle.NestedMaps(w.podSpec, "containers") {
			if !isManager(container) {
				continue
			}

			args := slices.Concat(nestedStrings(container, "command"), nestedStrings(container, "args"))
			if namespace := flag(args, "namespace"); namespace != "" && !isUnresolved(namespace) {
				report(p.componentsFile.at(w.doc, "-namespace"), "watches only the namespace %s", namespace)
			}
		}
	}
}

// flag returns the value of a command line flag. As in Go's flag packages, the last one counts.
func flag(args []string, name string) string {
	last := ""

	for i, arg := range args {
		key, value, hasValue := strings.Cut(arg, "=")
		if key != "--"+name && key != "-"+name {
			continue
		}

		if !hasValue && i+1 < len(args) {
			value = args[i+1]
		}

		last = strings.Trim(value, `"'`)
	}

	return last
}

func checkImages(p *parsedBundle, report reporter) {
	for _, w := range p.workloads {
		for _, container := range w.containers {
			image := nestedString(container, "image")
			if image == "" || isUnresolved(image) {
				continue
			}

			if problem := imageProblem(image); problem != "" {
				report(p.componentsFile.at(w.doc, "image: "+image),
					"runs the container %s with the image %s, %s", nestedString(container, "name"), image, problem)
			}
		}
	}
}

// imageProblem describes why an image's name is not canonical. It returns "" if it is.
func imageProblem(image string) string {
	named, err := reference.ParseNamed(image)
	if err != nil {
		return "which is not a canonical name"
	}

	_, digested := named.(reference.Digested)

	tagged, ok := named.(reference.Tagged)
	if !digested && (!ok || tagged.Tag() == "latest") {
		return "which has no version"
	}

	return ""
}
