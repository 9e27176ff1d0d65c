package lint

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

// templateRules are about cluster templates and ClusterClasses.
var templateRules = []rule{
	{
		Name:        "templates/valid",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#workload-cluster-templates",
		Requirement: "Cluster templates and ClusterClasses are YAML files of objects, with supported variables.",
		Why:         "`clusterctl generate cluster` fails.",
		Remedy:      "Fix the file at the reported line.",
		Check:       checkTemplatesValid,
	},
	{
		Name:        "templates/namespace",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#target-namespace-1",
		Requirement: "Objects of a cluster template are in one namespace, which exists already.",
		Why: "clusterctl moves every object to the target namespace, and gives a Namespace that name, so nothing is in " +
			"the namespace of the template.",
		Remedy: "Remove the namespaces from the template.",
		Check:  checkTemplateNamespace,
	},
	{
		Name:        "templates/common-variables",
		Level:       contract.Info,
		Contract:    contract.Clusterctl + "#common-variables",
		Requirement: "A cluster template uses ${CLUSTER_NAME} and ${KUBERNETES_VERSION}.",
		Why:         "The arguments of `clusterctl generate cluster` have no effect.",
		Remedy:      "Use the common variables.",
		Check:       checkCommonVariables,
	},
	{
		Name:        "templates/class",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#note",
		Requirement: "The ClusterClass of a cluster template is published, or part of the template.",
		Why:         "The Cluster waits for a ClusterClass that users have to find elsewhere.",
		Remedy:      "Publish the ClusterClass, or document where it comes from.",
		Check:       checkTemplateClass,
	},
	{
		Name:        "clusterclass/name",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#naming-conventions-2",
		Requirement: "The file clusterclass-<name>.yaml contains the ClusterClass <name>.",
		Why:         "clusterctl selects a ClusterClass by the name of the file, and so adds the wrong one.",
		Remedy:      "Rename the file or the ClusterClass.",
		Check:       checkClassName,
	},
	{
		Name:        "clusterclass/namespace",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#target-namespace-2",
		Requirement: "Objects and references of a ClusterClass file have no namespace.",
		Why:         "The ClusterClass works only in that namespace.",
		Remedy:      "Remove the namespaces.",
		Check:       checkClassNamespace,
	},
	{
		Name:        "clusterclass/shared-objects",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#target-namespace-2",
		Requirement: "No object is part of two ClusterClass files.",
		Why:         "A change to the object for one ClusterClass changes all Clusters of the other.",
		Remedy:      "Give each ClusterClass its own objects.",
		Check:       checkSharedObjects,
	},
	{
		Name:        "clusterclass/variables",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#variables-2",
		Requirement: "A ClusterClass file uses no ${VARIABLE}.",
		Why:         "Every user gets a different ClusterClass. ClusterClasses have variables of their own.",
		Remedy:      "Use spec.variables and spec.patches of the ClusterClass.",
		Check: func(p *parsedBundle, report reporter) {
			for f := range p.classFiles() {
				for _, v := range f.variables {
					report(f.whole(), "uses the variable %s", v.Name)
				}
			}
		},
	},
}

// classFiles iterates over the ClusterClass files.
func (p *parsedBundle) classFiles() iter.Seq[*file] { return p.templatesWhere(bundle.IsClusterClass) }

// clusterTemplates iterates over the other templates.
func (p *parsedBundle) clusterTemplates() iter.Seq[*file] {
	return p.templatesWhere(func(name string) bool { return !bundle.IsClusterClass(name) })
}

func (p *parsedBundle) templatesWhere(wanted func(name string) bool) iter.Seq[*file] {
	return func(yield func(*file) bool) {
		for i := range p.templateFiles {
			if wanted(p.templateFiles[i].name) && !yield(&p.templateFiles[i]) {
				return
			}
		}
	}
}

// coreObjects returns the objects of a kind of Cluster API's core.
func (f *file) coreObjects(kind string) []*bundle.Document {
	var found []*bundle.Document

	for i := range f.documents {
		gvk := f.documents[i].Object.GroupVersionKind()
		if gvk.Group == "cluster.x-k8s.io" && gvk.Kind == kind {
			found = append(found, &f.documents[i])
		}
	}

	return found
}

func checkTemplatesValid(p *parsedBundle, report reporter) {
	for _, t := range p.templateFiles {
		if t.err != nil {
			reportInvalid(report, t.name, t.err)
		}
	}
}

func checkTemplateNamespace(p *parsedBundle, report reporter) {
	for f := range p.clusterTemplates() {
		first := ""

		for i := range f.documents {
			doc := &f.documents[i]

			if doc.IsNamespace() {
				if name := doc.Object.GetName(); !isUnresolved(name) {
					report(f.at(doc), "is not the target namespace, ${NAMESPACE}")
				}

				continue
			}

			namespace := doc.Object.GetNamespace()
			switch {
			case namespace == "", isUnresolved(namespace):
			case first == "":
				first = namespace
			case namespace != first:
				report(f.at(doc), "is in the namespace %s, but other objects are in %s",
					namespace, first)
			}
		}
	}
}

func checkCommonVariables(p *parsedBundle, report reporter) {
	for f := range p.clusterTemplates() {
		used := map[string]bool{}
		for _, v := range f.variables {
			used[v.Name] = true
		}

		for _, cluster := range f.coreObjects("Cluster") {
			for _, name := range []string{"CLUSTER_NAME", "KUBERNETES_VERSION"} {
				if !used[name] {
					report(f.at(cluster), "does not use ${%s}", name)
				}
			}
		}
	}
}

// topologyClass returns the name of a Cluster's ClusterClass, in v1beta2 or an older version.
func topologyClass(cluster *unstructured.Unstructured) string {
	if name := bundle.NestedString(cluster.Object, "spec", "topology", "classRef", "name"); name != "" {
		return name
	}

	return bundle.NestedString(cluster.Object, "spec", "topology", "class")
}

func checkTemplateClass(p *parsedBundle, report reporter) {
	published := map[string]bool{}

	for f := range p.classFiles() {
		published[bundle.ClusterClassName(f.name)] = true
	}

	for f := range p.clusterTemplates() {
		available := maps.Clone(published)
		for _, class := range f.coreObjects("ClusterClass") {
			available[class.Object.GetName()] = true
		}

		for _, cluster := range f.coreObjects("Cluster") {
			class := topologyClass(cluster.Object)
			if class != "" && !isUnresolved(class) && !available[class] {
				report(f.at(cluster), "uses the ClusterClass %s, which is not published", class)
			}
		}
	}
}

func checkClassName(p *parsedBundle, report reporter) {
	for f := range p.classFiles() {
		if f.err != nil {
			continue
		}

		want := bundle.ClusterClassName(f.name)
		matches := func(doc *bundle.Document) bool {
			name := doc.Object.GetName()
			return name == want || isUnresolved(name)
		}

		if !slices.ContainsFunc(f.coreObjects("ClusterClass"), matches) {
			report(f.whole(), "contains no ClusterClass %s", want)
		}
	}
}

func checkClassNamespace(p *parsedBundle, report reporter) {
	for f := range p.classFiles() {
		for i := range f.documents {
			doc := &f.documents[i]
			if namespace := doc.Object.GetNamespace(); namespace != "" {
				report(f.at(doc), "is in the namespace %s", namespace)
			}
		}

		for _, class := range f.coreObjects("ClusterClass") {
			for _, ref := range namespacedReferences("spec", bundle.NestedMap(class.Object.Object, "spec")) {
				report(f.at(class), "refers to a namespace in %s", ref)
			}
		}
	}
}

// namespacedReferences returns the sorted paths of all references with a namespace below a value.
// It skips variables and patches, whose content is arbitrary.
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

func checkSharedObjects(p *parsedBundle, report reporter) {
	first := map[string]string{}

	for f := range p.classFiles() {
		for i := range f.documents {
			doc := &f.documents[i]

			id := doc.Object.GroupVersionKind().GroupKind().String() + "/" + doc.Object.GetName()

			other, found := first[id]
			if found && other != f.name && !isUnresolved(id) {
				report(f.at(doc), "is also part of %s", other)
				continue
			}

			first[id] = f.name
		}
	}
}
