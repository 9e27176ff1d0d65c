package lint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

// componentRules are about the components, as clusterctl reads them.
var componentRules = []rule{
	{
		Name:        "components/valid",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#components-yaml",
		Requirement: "The components are one YAML file of objects, with at most one Namespace and supported variables.",
		Why: "Capstan refuses the file, and so does clusterctl unless the finding is about a limit or the place of an " +
			"expression.",
		Remedy: "Fix the file at the reported line.",
		Check: func(p *parsedBundle, report reporter) {
			if p.componentsFile.err != nil && len(p.Components) > 0 {
				reportInvalid(report, p.componentsFile.name, p.componentsFile.err)
			}
		},
	},
	{
		Name:        "components/duplicate-object",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#components-yaml",
		Requirement: "The components contain each object once, also within one namespace.",
		Why:         "The last one replaces the others without a warning.",
		Remedy:      "Remove the duplicate.",
		Check:       checkDuplicates,
	},
	{
		Name:        "components/namespace",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#target-namespace",
		Requirement: "The components contain the provider's default Namespace.",
		Why:         "clusterctl requires its users to set --target-namespace.",
		Remedy:      "Add a Namespace object.",
		Check: func(p *parsedBundle, report reporter) {
			if len(p.componentsFile.documents) > 0 && len(p.objects("Namespace")) == 0 {
				report(p.componentsFile.whole(), "contains no Namespace")
			}
		},
	},
	{
		Name:        "components/target-namespace",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#target-namespace",
		Requirement: "All objects are in the provider's own namespace.",
		Why:         "Installers move every object to the target namespace, so this object will not be where it is needed.",
		Remedy:      "Move the object to the provider's namespace, or remove it.",
		Check:       checkTargetNamespace,
	},
	{
		Name:        "components/manager",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#controllers--watching-namespace",
		Requirement: "Controllers run in a Deployment, in a container named manager.",
		Why:         "Tools that change the manager's image, arguments, or resources find it by this name.",
		Remedy:      "Run the controllers in a Deployment and name their container manager.",
		Check:       checkManager,
	},
	{
		Name:        "components/watch-namespace",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#controllers--watching-namespace",
		Requirement: "The manager watches all namespaces.",
		Why:         "Clusters in other namespaces are never reconciled.",
		Remedy:      "Remove the flag --namespace, or leave its value empty.",
		Check:       checkWatchNamespace,
	},
	{
		Name:        "components/image-name",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#controllers--watching-namespace",
		Requirement: "Images of Deployments and DaemonSets have canonical names, with a registry.",
		Why:         "clusterctl rejects the provider.",
		Remedy:      "Write the full name, for example registry.k8s.io/cluster-api/cluster-api-controller:v1.14.0.",
		Check:       eachImage(bundle.NeedsCanonicalImages, notCanonical),
	},
	{
		Name:        "components/job-image-name",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#controllers--watching-namespace",
		Requirement: "Images of Jobs and other workloads have canonical names, too.",
		Why: "The meaning of a short name depends on each node's container runtime, and mirrors and image overrides do " +
			"not match it.",
		Remedy: "Write the full name, for example registry.k8s.io/cluster-api/cluster-api-controller:v1.14.0.",
		Check:  eachImage(mayHaveShortImages, notCanonical),
	},
	{
		Name:        "components/image-version",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#controllers--watching-namespace",
		Requirement: "Images have a digest, or a tag other than latest.",
		Why:         "The image changes over time, so each installation of the version runs another program.",
		Remedy:      "Add the version as a tag, for example controller:v1.14.0.",
		Check:       eachImage(bundle.RunsPods, noVersion),
	},
	{
		Name:        "components/helm-annotations",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#components-yaml-transformations",
		Requirement: "Objects have no annotations for Helm.",
		Why: "clusterctl ignores them: it runs no hooks, and keeps no object of a provider that it deletes. Capstan " +
			"removes them from charts, to the same effect.",
		Remedy: "Remove the annotations, and do not rely on hooks.",
		Check:  checkHelmAnnotations,
	},
	{
		Name:        "components/provider-label",
		Level:       contract.Info,
		Contract:    contract.Clusterctl + "#labels",
		Requirement: "All objects have the label " + v1alpha2.ClusterctlProviderLabel + " with the provider's label.",
		Why: "Nothing fails: installers set the label themselves. Only users who applied the file with kubectl and " +
			"change to clusterctl have to add it.",
		Remedy: "Set the label on all objects, for example with the labels of a kustomization.yaml.",
		Check:  checkProviderLabel,
	},
}

// checkDuplicates compares objects without their namespaces, since installers set the same one on all.
func checkDuplicates(p *parsedBundle, report reporter) {
	seen := map[[3]string]*bundle.Document{}

	for i := range p.componentsFile.documents {
		doc := &p.componentsFile.documents[i]
		gvk := doc.Object.GroupVersionKind()

		id := [3]string{gvk.Group, gvk.Kind, doc.Object.GetName()}

		first := seen[id]
		if first == nil {
			seen[id] = doc
			continue
		}

		if !isUnresolved(strings.Join(id[:], "")) {
			report(p.componentsFile.at(doc), "already exists on line %d", first.Line)
		}
	}
}

func checkTargetNamespace(p *parsedBundle, report reporter) {
	target := ""
	for _, doc := range p.objects("Namespace") {
		target = doc.Object.GetName()
	}

	for i := range p.componentsFile.documents {
		doc := &p.componentsFile.documents[i]

		namespace := doc.Object.GetNamespace()
		if namespace == "" || isUnresolved(namespace) || isUnresolved(target) {
			continue
		}

		if !p.scopes.Namespaced(doc.Object.GroupVersionKind().GroupKind()) {
			continue // installers and the API server ignore the namespace
		}

		// Without a Namespace object, the namespace of the first object counts.
		target = cmp.Or(target, namespace)
		if namespace != target {
			report(p.componentsFile.at(doc),
				"is in the namespace %s, but the provider's namespace is %s", namespace, target)
		}
	}
}

// checkHelmAnnotations does not check CRDs, of which charts keep the annotations: Helm ignores them there.
func checkHelmAnnotations(p *parsedBundle, report reporter) {
	for i := range p.componentsFile.documents {
		doc := &p.componentsFile.documents[i]
		if doc.IsCRD() {
			continue
		}

		for _, key := range slices.Sorted(maps.Keys(doc.Object.GetAnnotations())) {
			if bundle.IsHelmAnnotation(key) {
				report(p.componentsFile.at(doc), "has the annotation %s", key)
			}
		}
	}
}

func checkProviderLabel(p *parsedBundle, report reporter) {
	wrong := map[string][]*bundle.Document{}

	for i := range p.componentsFile.documents {
		doc := &p.componentsFile.documents[i]

		label := doc.Object.GetLabels()[v1alpha2.ClusterctlProviderLabel]
		if label != p.Provider.Label && !isUnresolved(label) {
			wrong[label] = append(wrong[label], doc)
		}
	}

	for _, label := range slices.Sorted(maps.Keys(wrong)) {
		found := "has no label " + v1alpha2.ClusterctlProviderLabel
		if label != "" {
			found = fmt.Sprintf("has the label %s=%s", v1alpha2.ClusterctlProviderLabel, label)
		}

		p.componentsFile.reportOnce(report, wrong[label], fmt.Sprintf("%s (expected %s)", found, p.Provider.Label))
	}
}
