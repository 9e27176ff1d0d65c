package bundle

import (
	"regexp"
	"strings"
)

// Names of the files that a provider publishes, as defined by the clusterctl provider contract.
const (
	// MetadataFile maps the provider's release series to Cluster API contracts.
	MetadataFile = "metadata.yaml"
	// ComponentsFile is the name that messages use for the components, whatever name they were
	// published under.
	ComponentsFile = "components.yaml"

	clusterTemplatePrefix = "cluster-template"
	clusterClassPrefix    = "clusterclass-"
	templateSuffix        = ".yaml"
)

// templateFile matches cluster-template*.yaml and clusterclass-*.yaml. Names come from servers, so
// slashes and other characters that are special in a path do not match.
var templateFile = regexp.MustCompile(`^(cluster-template|clusterclass-)[A-Za-z0-9._-]*\.yaml$`)

// IsTemplate reports whether a published file is a cluster template or a ClusterClass. It accepts
// more names than the contract does: a cluster template whose name does not follow the contract
// still belongs to the provider.
func IsTemplate(name string) bool { return templateFile.MatchString(name) }

// IsClusterClass reports whether a published file is a ClusterClass.
func IsClusterClass(name string) bool {
	return IsTemplate(name) && strings.HasPrefix(name, clusterClassPrefix)
}

// ClusterClassName returns the name of the ClusterClass that a file must define: <name> for
// clusterclass-<name>.yaml. It returns "" if the file is not a ClusterClass.
func ClusterClassName(file string) string {
	if !IsClusterClass(file) {
		return ""
	}

	return strings.TrimSuffix(strings.TrimPrefix(file, clusterClassPrefix), templateSuffix)
}

// Flavor returns the flavor that selects a cluster template, and whether the file is one: <flavor> for
// cluster-template-<flavor>.yaml, and "" for the default one, cluster-template.yaml.
func Flavor(file string) (flavor string, isTemplate bool) {
	flavor, found := strings.CutPrefix(strings.TrimSuffix(file, templateSuffix), clusterTemplatePrefix)
	if !found || flavor != "" && flavor[0] != '-' {
		return "", false
	}

	return strings.TrimPrefix(flavor, "-"), true
}
