package lint

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

// templateLinkRules are about the objects of cluster templates and ClusterClasses, together with those that
// they refer to and the kinds of the components.
var templateLinkRules = []rule{
	{
		Name:        "templates/references",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#links-to-external-objects",
		Requirement: "A cluster template contains the objects to which it refers by a name of its own.",
		Why:         "The Cluster waits for the object until it is created in another way.",
		Remedy:      "Add the object, use a variable for its name, or document where it comes from.",
		Check:       checkTemplateReferences,
	},
	{
		Name:        "templates/served-versions",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#workload-cluster-templates",
		Requirement: "Cluster templates use API versions that the CRDs serve.",
		Why:         "The API server rejects the object.",
		Remedy:      "Use the version of the API that the provider serves.",
		Check:       checkTemplateVersions,
	},
}

func checkTemplateVersions(p *parsedBundle, report reporter) {
	for i := range p.templateFiles {
		f := &p.templateFiles[i]

		for j := range f.documents {
			doc := &f.documents[j]
			gvk := doc.Object.GroupVersionKind()

			c := p.findCRD(gvk.Group, gvk.Kind)
			if c == nil || isUnresolved(gvk.Version) {
				continue
			}

			if version := c.Version(gvk.Version); version == nil || !version.Served {
				report(f.at(doc), "has the API version %s, which %s does not serve", gvk.GroupVersion(), c.Name)
			}
		}
	}
}

// link is a reference of an object in a template.
type link struct{ kind, name string }

func checkTemplateReferences(p *parsedBundle, report reporter) {
	for i := range p.templateFiles {
		f := &p.templateFiles[i]

		exists := map[link]bool{}
		for j := range f.documents {
			exists[link{f.documents[j].Object.GetKind(), f.documents[j].Object.GetName()}] = true
		}

		patched := f.patchedPaths()

		for j := range f.documents {
			doc := &f.documents[j]
			if !p.refersByContract(doc) {
				continue
			}

			unpatched := doc.Object.DeepCopy().Object
			for _, path := range patched[doc.Object.GroupVersionKind().GroupKind()] {
				removePath(unpatched, path)
			}

			for _, l := range linksIn(unpatched["spec"]) {
				if !exists[l] && p.isOwnName(l) {
					exists[l] = true // so that it is reported once a file

					report(f.at(doc), "refers to %s %s, which the file does not contain", l.kind, written(l.name))
				}
			}
		}
	}
}

// patchedPaths returns the paths that the ClusterClasses of a file replace in the objects that they create from
// templates, by the kind of the template. What a template has there is a placeholder.
func (f *file) patchedPaths() map[schema.GroupKind][][]string {
	paths := map[schema.GroupKind][][]string{}

	for _, class := range f.coreObjects("ClusterClass") {
		for _, patch := range bundle.NestedMaps(class.Object.Object, "spec", "patches") {
			for _, definition := range bundle.NestedMaps(patch, "definitions") {
				kind := schema.FromAPIVersionAndKind(
					bundle.NestedString(definition, "selector", "apiVersion"), bundle.NestedString(definition, "selector", "kind"),
				).GroupKind()

				for _, change := range bundle.NestedMaps(definition, "jsonPatches") {
					path := strings.TrimPrefix(bundle.NestedString(change, "path"), "/")
					paths[kind] = append(paths[kind], strings.Split(path, "/"))
				}
			}
		}
	}

	return paths
}

// removePath removes the value at the path of a JSON patch, if there is one. An item of a list becomes nil, so that the
// others keep their positions.
func removePath(value any, path []string) {
	key, rest := path[0], path[1:]

	switch v := value.(type) {
	case map[string]any:
		if len(rest) == 0 {
			delete(v, key)
		} else {
			removePath(v[key], rest)
		}
	case []any:
		n, err := strconv.Atoi(key)

		switch {
		case err != nil || n < 0 || n >= len(v): // "-" adds an item
		case len(rest) == 0:
			v[n] = nil
		default:
			removePath(v[n], rest)
		}
	}
}

// refersByContract reports whether references in an object follow the conventions of Cluster API: in its own
// kinds, and in those of providers.
func (p *parsedBundle) refersByContract(doc *bundle.Document) bool {
	gvk := doc.Object.GroupVersionKind()

	return gvk.Group == "cluster.x-k8s.io" || strings.HasSuffix(gvk.Group, ".cluster.x-k8s.io") ||
		p.findCRD(gvk.Group, gvk.Kind) != nil
}

// isOwnName reports whether the template itself determines the name of an object, so that no user is
// likely to create it. Users choose names by variables. Controllers create Secrets and ConfigMaps whose
// names begin with that of the Cluster.
func (p *parsedBundle) isOwnName(l link) bool {
	switch {
	case l.kind == "Secret", l.kind == "ConfigMap":
		return !isUnresolved(l.name) && !strings.Contains(l.name, sampleCluster)
	case slices.ContainsFunc(p.crds, func(c *crd) bool { return c.Kind == l.kind && c.IsClusterScoped() }):
		return false // a template creates objects in one namespace
	}

	return l.name != bundle.Placeholder
}

// linksIn returns the references in a value, sorted by path. It skips variables and patches of
// ClusterClasses, whose content is arbitrary, and what is marked as optional.
func linksIn(value any) []link {
	var links []link

	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "variables" || key == "patches" {
				continue
			}

			if l, ok := linkOf(key, v[key]); ok {
				links = append(links, l)
			}

			links = append(links, linksIn(v[key])...)
		}
	case []any:
		for _, item := range v {
			if l, ok := linkOf("", item); ok {
				links = append(links, l)
			}

			links = append(links, linksIn(item)...)
		}
	}

	return links
}

// linkOf returns the reference that a field holds: a map with a kind and a name, or the name of a Secret or
// ConfigMap.
func linkOf(key string, value any) (link, bool) {
	if name, ok := value.(string); ok && key == "secretName" {
		return link{"Secret", name}, name != ""
	}

	field, _ := value.(map[string]any)
	name := bundle.NestedString(field, "name")

	kind := bundle.NestedString(field, "kind")
	if kind == "" {
		kind = kindOfField(strings.ToLower(key))
	}

	return link{kind, name}, kind != "" && name != "" && field["optional"] != true
}

// kindOfField returns the kind of the objects to which a field refers by convention, or "".
func kindOfField(key string) string {
	for suffix, kind := range map[string]string{
		"secretref": "Secret", "secretkeyref": "Secret",
		"configmapref": "ConfigMap", "configmapkeyref": "ConfigMap",
	} {
		if strings.HasSuffix(key, suffix) {
			return kind
		}
	}

	switch key {
	case "secret":
		return "Secret"
	case "configmap":
		return "ConfigMap"
	}

	return ""
}
