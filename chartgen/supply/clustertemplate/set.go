// Package clustertemplate generates the manifests of a workload cluster from the cluster templates in
// a provider's chart, like `clusterctl generate cluster` does from the provider's release.
// clusterctl's own library substitutes variables and sets the namespace. A ClusterClass that the
// Cluster needs is included.
package clustertemplate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// Parts of the names of files, by the clusterctl provider contract: cluster-template.yaml,
// cluster-template-<flavor>.yaml and clusterclass-<name>.yaml.
const (
	templatePrefix = "cluster-template"
	classPrefix    = "clusterclass-"
	suffix         = ".yaml"
)

// Set is the cluster templates and ClusterClasses of one version of a provider.
type Set struct {
	// Provider is the provider's label, for example "infrastructure-aws".
	Provider string
	// Version of the provider, with its "v".
	Version string
	// Files with their published names.
	Files []bundle.File
	// Unlisted reports whether the version may have more templates, because they could not be listed.
	Unlisted bool
}

// String returns the label and version of the provider.
func (s *Set) String() string { return s.Provider + " " + s.Version }

// Flavors returns the possible values of Request.Flavor, sorted. "" is the default template.
func (s *Set) Flavors() []string {
	var flavors []string

	for _, f := range s.Files {
		if flavor, isTemplate := bundle.Flavor(f.Name); isTemplate {
			flavors = append(flavors, flavor)
		}
	}

	slices.Sort(flavors)

	return flavors
}

// template returns the file of a flavor. The error is a *source.NotFoundError that lists the
// available flavors.
func (s *Set) template(flavor string) (bundle.File, error) {
	name := templatePrefix + suffix
	if flavor != "" {
		name = templatePrefix + "-" + flavor + suffix
	}

	if file, found := s.file(name); found {
		return file, nil
	}

	flavors := s.Flavors()
	if s.Unlisted {
		return bundle.File{}, &source.NotFoundError{Message: fmt.Sprintf(
			"the chart of %s has no %s, because the source could not list the cluster templates when it was built; "+
				"change the annotation %s of the provider's resource to fetch them, or build the chart again",
			s, name, v1alpha2.ReconcileRequestAnnotation)}
	}

	if len(flavors) == 0 {
		return bundle.File{}, &source.NotFoundError{
			Message: fmt.Sprintf(
				"%s publishes no cluster template; take another version, or write the cluster's manifests by hand",
				s,
			),
		}
	}

	missing := fmt.Sprintf("flavor %q", flavor)
	if flavor == "" {
		missing = "default template"
	}

	if flavors[0] == "" {
		flavors[0] = "none for the default"
	}

	return bundle.File{}, &source.NotFoundError{
		Message: fmt.Sprintf("%s has no %s; choose a flavor: %s", s, missing, strings.Join(flavors, ", ")),
	}
}

// file returns the file with a name and reports whether there is one.
func (s *Set) file(name string) (bundle.File, bool) {
	i := slices.IndexFunc(s.Files, func(f bundle.File) bool { return f.Name == name })
	if i < 0 {
		return bundle.File{}, false
	}

	return s.Files[i], true
}

// Infrastructure selects an infrastructure provider.
type Infrastructure struct {
	// Name of the provider, for example "aws"; empty means the only one there is.
	Name string
	// Version is an exact version or a range; empty means the installed or newest one.
	Version string
}

// ParseInfrastructure parses clusterctl's notation name[:version]. Both may be missing.
func ParseInfrastructure(s string) (Infrastructure, error) {
	if s == "" {
		return Infrastructure{}, nil
	}

	name, version, versioned := strings.Cut(s, ":")

	name = strings.ToLower(name)
	if len(validation.IsDNS1123Label(name)) > 0 || versioned && version == "" || strings.Contains(version, ":") {
		return Infrastructure{}, fmt.Errorf(
			"infrastructure provider %q is not of the form name[:version]; write for example aws or aws:v2.11.1",
			s,
		)
	}

	return Infrastructure{Name: name, Version: version}, nil
}

// check returns a *source.NotFoundError if a set is not of the selected provider and version.
func (i Infrastructure) check(s *Set) error {
	if i.Name != "" && v1alpha2.InfrastructureProviderType.Label(i.Name) != s.Provider {
		return &source.NotFoundError{
			Message: fmt.Sprintf("%s is not the infrastructure provider %s; name the provider that it is, or none", s, i.Name),
		}
	}

	if _, err := source.Pick([]source.Version{{Name: s.Version}}, i.Version, ""); err != nil {
		return fmt.Errorf("%s: %w", s.Provider, err)
	}

	return nil
}
