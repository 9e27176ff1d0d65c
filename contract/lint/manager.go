package lint

import (
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/spf13/pflag"

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

func isManager(container map[string]any) bool {
	return bundle.NestedString(container, "name") == "manager"
}

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
				report(p.componentsFile.at(w.doc), "watches only the namespace %s", namespace)
			}
		}
	}
}

// flag returns the value of a flag of a command line with other flags; empty if it is not set.
func flag(args []string, name string) string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.ParseErrorsAllowlist.UnknownFlags = true
	set.Usage = func() {}
	value := set.String(name, "", "")
	_ = set.Parse(args) // --help is no error here

	return strings.Trim(*value, `"'`)
}

// eachImage returns a check of the images of the selected workloads. The problem is why the name of an
// image is wrong, or empty if it is not.
func eachImage(selected func(map[string]any) bool, problem func(string) string) func(*parsedBundle, reporter) {
	return func(p *parsedBundle, report reporter) {
		for _, w := range p.workloads {
			if !selected(w.doc.Object.Object) {
				continue
			}

			for _, container := range w.containers {
				image := bundle.NestedString(container, "image")
				if image == "" || isUnresolved(image) {
					continue
				}

				if problem := problem(image); problem != "" {
					report(p.componentsFile.at(w.doc),
						"runs the container %s with the image %s, %s", bundle.NestedString(container, "name"), image, problem)
				}
			}
		}
	}
}

func mayHaveShortImages(workload map[string]any) bool { return !bundle.NeedsCanonicalImages(workload) }

func notCanonical(image string) string {
	if !bundle.IsCanonicalImage(image) {
		return "which is not a canonical name"
	}

	return ""
}

func noVersion(image string) string {
	named, err := reference.ParseDockerRef(image) // which adds the tag latest if there is neither tag nor digest
	if err != nil {
		return "" // notCanonical reports it
	}

	if tagged, ok := named.(reference.Tagged); ok && tagged.Tag() == "latest" {
		return "which has no version"
	}

	return ""
}
