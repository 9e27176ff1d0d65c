package lint

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// templateRules are about cluster templates and ClusterClasses.
var templateRules = []Rule{
	{
		Name:        "templates/valid",
		Level:       Error,
		Requirement: "001-29",
		Contract:    clusterctlContract + "#workload-cluster-templates",
		Demand:      "Cluster templates and ClusterClasses are YAML files of Kubernetes objects with variables that drone/envsubst understands.",
		Why:         "`clusterctl generate cluster` fails.",
		Remedy:      "Correct the file where the finding points.",
		check:       checkTemplatesValid,
	},
	{
		Name:        "templates/namespace",
		Level:       Error,
		Requirement: "001-30",
		Contract:    clusterctlContract + "#target-namespace-1",
		Demand:      "All objects of a cluster template are in one namespace, which exists before.",
		Why:         "clusterctl moves every object to one namespace, and references between two no longer hold.",
		Remedy:      "Leave namespaces out of the template.",
		check:       checkTemplateNamespace,
	},
	{
		Name:        "templates/common-variables",
		Level:       Info,
		Requirement: "001-31",
		Contract:    clusterctlContract + "#common-variables",
		Demand:      "A cluster template takes the Cluster's name from ${CLUSTER_NAME} and its version from ${KUBERNETES_VERSION}.",
		Why:         "What the user gives `clusterctl generate cluster` has no effect.",
		Remedy:      "Use the common variables.",
		check:       checkCommonVariables,
	},
	{
		Name:        "templates/class",
		Level:       Warning,
		Requirement: "001-37",
		Contract:    clusterctlContract + "#note",
		Demand:      "The ClusterClass that a cluster template names is published beside it, as clusterclass-<name>.yaml, or is in the template itself.",
		Why:         "The Cluster waits for a class that its user has to find elsewhere.",
		Remedy:      "Publish the ClusterClass, or say in the documentation where it comes from.",
		check:       checkTemplateClass,
	},
	{
		Name:        "clusterclass/name",
		Level:       Error,
		Requirement: "001-33",
		Contract:    clusterctlContract + "#naming-conventions-2",
		Demand:      "clusterclass-<name>.yaml holds the ClusterClass <name>.",
		Why:         "clusterctl looks for a class by the file's name, and adds another one than the template needs.",
		Remedy:      "Rename the file or the ClusterClass.",
		check:       checkClassName,
	},
	{
		Name:        "clusterclass/namespace",
		Level:       Warning,
		Requirement: "001-34",
		Contract:    clusterctlContract + "#target-namespace-2",
		Demand:      "Neither the objects nor the references of a ClusterClass file name a namespace.",
		Why:         "The class works in that one namespace only.",
		Remedy:      "Leave namespaces out.",
		check:       checkClassNamespace,
	},
	{
		Name:        "clusterclass/shared-objects",
		Level:       Warning,
		Requirement: "001-35",
		Contract:    clusterctlContract + "#target-namespace-2",
		Demand:      "No object is part of two ClusterClass files.",
		Why:         "Whoever changes it for one class changes all Clusters of the other.",
		Remedy:      "Give each class its own objects.",
		check:       checkSharedObjects,
	},
	{
		Name: "clusterclass/variables", Level: Warning, Requirement: "001-36", Contract: clusterctlContract + "#variables-2",
		Demand: "A ClusterClass file uses no ${VARIABLE}.",
		Why:    "One class becomes another for each user; ClusterClasses have variables of their own.",
		Remedy: "Use the ClusterClass's spec.variables and patches.",
		check: func(r *release, report reporter) {
			for f := range r.classFiles() {
				for _, v := range f.variables {
					report(place{file: f.name, line: v.Lines[0]}, "uses the variable %s", v.Name)
				}
			}
		},
	},
}

// classFiles are the ClusterClass files.
func (r *release) classFiles() iter.Seq[*file] { return r.templatesWhere(isClassFile) }

// clusterTemplates are the other templates.
func (r *release) clusterTemplates() iter.Seq[*file] {
	return r.templatesWhere(func(name string) bool { return !isClassFile(name) })
}

func isClassFile(name string) bool { return strings.HasPrefix(name, "clusterclass-") }

func (r *release) templatesWhere(wanted func(name string) bool) iter.Seq[*file] {
	return func(yield func(*file) bool) {
		for i := range r.templates {
			if wanted(r.templates[i].name) && !yield(&r.templates[i]) {
				return
			}
		}
	}
}

// ofGroup are the documents of a kind of Cluster API's core.
func (f *file) ofGroup(kind string) []*bundle.Document {
	var found []*bundle.Document

	for i := range f.documents {
		gvk := f.documents[i].Object.GroupVersionKind()
		if gvk.Group == "cluster.x-k8s.io" && gvk.Kind == kind {
			found = append(found, &f.documents[i])
		}
	}

	return found
}

func checkTemplatesValid(r *release, report reporter) {
	for i, t := range r.templates {
		if t.err != nil && !t.spurious(r.Templates[i].Data) {
			at, reason := invalid(t.name, t.err)
			report(at, "%s", reason)
		}
	}
}

func checkTemplateNamespace(r *release, report reporter) {
	for f := range r.clusterTemplates() {
		first := ""

		for i := range f.documents {
			doc := &f.documents[i]

			namespace := doc.Object.GetNamespace()
			switch {
			case doc.IsNamespace():
				report(f.at(doc), "creates a namespace")
			case namespace == "" || open(namespace):
			case first == "":
				first = namespace
			case namespace != first:
				report(f.at(doc, "namespace: "+namespace), "is in namespace %s, others are in %s", namespace, first)
			}
		}
	}
}

func checkCommonVariables(r *release, report reporter) {
	for f := range r.clusterTemplates() {
		used := map[string]bool{}
		for _, v := range f.variables {
			used[v.Name] = true
		}

		for _, cluster := range f.ofGroup("Cluster") {
			for _, name := range []string{"CLUSTER_NAME", "KUBERNETES_VERSION"} {
				if !used[name] {
					report(f.at(cluster), "does not use ${%s}", name)
				}
			}
		}
	}
}

// topologyClass is the name of a Cluster's class, in v1beta2 and before.
func topologyClass(cluster *unstructured.Unstructured) string {
	if name := text(cluster.Object, "spec", "topology", "classRef", "name"); name != "" {
		return name
	}

	return text(cluster.Object, "spec", "topology", "class")
}

func checkTemplateClass(r *release, report reporter) {
	published := map[string]bool{}

	for _, t := range r.templates {
		if name, ok := strings.CutPrefix(t.name, "clusterclass-"); ok {
			published[strings.TrimSuffix(name, ".yaml")] = true
		}
	}

	for f := range r.clusterTemplates() {
		own := maps.Clone(published)
		for _, class := range f.ofGroup("ClusterClass") {
			own[class.Object.GetName()] = true
		}

		for _, cluster := range f.ofGroup("Cluster") {
			if class := topologyClass(cluster.Object); class != "" && !open(class) && !own[class] {
				report(f.at(cluster, "topology:", class), "is of class %s, which is not published", class)
			}
		}
	}
}

func checkClassName(r *release, report reporter) {
	for f := range r.classFiles() {
		if f.err != nil {
			continue
		}

		want := strings.TrimSuffix(strings.TrimPrefix(f.name, "clusterclass-"), ".yaml")

		classes := f.ofGroup("ClusterClass")
		if !slices.ContainsFunc(classes, func(doc *bundle.Document) bool {
			name := doc.Object.GetName()
			return name == want || open(name)
		}) {
			report(f.whole(), "holds no ClusterClass %s", want)
		}
	}
}

func checkClassNamespace(r *release, report reporter) {
	for f := range r.classFiles() {
		for i := range f.documents {
			doc := &f.documents[i]
			if namespace := doc.Object.GetNamespace(); namespace != "" {
				report(f.at(doc, "namespace: "), "is in namespace %s", namespace)
			}
		}

		for _, class := range f.ofGroup("ClusterClass") {
			for _, ref := range namespacedReferences("spec", mapping(class.Object.Object, "spec")) {
				report(f.at(class, "namespace: "), "names a namespace in %s", ref)
			}
		}
	}
}

// namespacedReferences are the paths of all references under a value that name a namespace, sorted.
// Variables and patches are the class's own business.
func namespacedReferences(path string, v any) []string {
	var found []string

	switch v := v.(type) {
	case map[string]any:
		if v["kind"] != nil && v["namespace"] != nil {
			found = append(found, path)
		}

		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key != "variables" && key != "patches" {
				found = append(found, namespacedReferences(path+"."+key, v[key])...)
			}
		}
	case []any:
		for i, item := range v {
			found = append(found, namespacedReferences(fmt.Sprintf("%s[%d]", path, i), item)...)
		}
	}

	return found
}

func checkSharedObjects(r *release, report reporter) {
	first := map[string]string{}

	for f := range r.classFiles() {
		for i := range f.documents {
			doc := &f.documents[i]

			id := doc.Object.GroupVersionKind().GroupKind().String() + "/" + doc.Object.GetName()
			if other, there := first[id]; there && other != f.name && !open(id) {
				report(f.at(doc), "is part of %s too", other)
			} else {
				first[id] = f.name
			}
		}
	}
}
