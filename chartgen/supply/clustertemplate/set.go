// Package clustertemplate makes the manifests of a workload cluster from the templates that travel
// in a provider's chart, as `clusterctl generate cluster` makes them from the provider's release:
// clusterctl's own library substitutes the variables and sets the namespace, and the ClusterClass
// that a topology names comes along.
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

// How the files are called, by the clusterctl provider contract: cluster-template.yaml,
// cluster-template-<flavor>.yaml and clusterclass-<name>.yaml.
const (
	templatePrefix = "cluster-template"
	classPrefix    = "clusterclass-"
	suffix         = ".yaml"
)

// Set is the templates and classes that one version of a provider publishes.
type Set struct {
	// Provider is the provider's label, for example "infrastructure-aws".
	Provider string
	// Version of the provider with its "v".
	Version string
	// Files are the templates and classes, by their published names.
	Files []bundle.File
}

// String names the set for people.
func (s *Set) String() string { return s.Provider + " " + s.Version }

// Flavors are the names that Request.Flavor may have, sorted; "" is the default template.
func (s *Set) Flavors() []string {
	var flavors []string

	for _, f := range s.Files {
		flavor, found := strings.CutPrefix(strings.TrimSuffix(f.Name, suffix), templatePrefix)
		if found && (flavor == "" || flavor[0] == '-') {
			flavors = append(flavors, strings.TrimPrefix(flavor, "-"))
		}
	}

	slices.Sort(flavors)

	return flavors
}

// isTemplate reports whether a set takes a file of that name.
func isTemplate(name string) bool {
	return strings.HasSuffix(name, suffix) &&
		(strings.HasPrefix(name, templatePrefix) || strings.HasPrefix(name, classPrefix))
}

// template is the file of a flavor. Its error is a *source.NotFoundError that lists the flavors
// there are.
func (s *Set) template(flavor string) (bundle.File, error) {
	name := templatePrefix + suffix
	if flavor != "" {
		name = templatePrefix + "-" + flavor + suffix
	}

	if file, found := s.file(name); found {
		return file, nil
	}

	flavors := s.Flavors()
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

func (s *Set) file(name string) (bundle.File, bool) {
	i := slices.IndexFunc(s.Files, func(f bundle.File) bool { return f.Name == name })
	if i < 0 {
		return bundle.File{}, false
	}

	return s.Files[i], true
}

// Infrastructure is the provider whose templates are wanted. What is empty is left to the source.
type Infrastructure struct {
	// Name of the provider, for example "aws".
	Name string
	// Version is one version or a range.
	Version string
}

// ParseInfrastructure reads clusterctl's notation, name[:version]. "" leaves both open.
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

// label is the provider's label; only for one with a name.
func (i Infrastructure) label() string { return v1alpha2.InfrastructureProviderType.Label(i.Name) }

// accept gives the set back if it is of this provider and version.
func (i Infrastructure) check(s *Set) (*Set, error) {
	if i.Name != "" && i.label() != s.Provider {
		return nil, &source.NotFoundError{
			Message: fmt.Sprintf("%s is not the infrastructure provider %s; name the provider that it is, or none", s, i.Name),
		}
	}

	if _, err := source.Pick([]source.Version{{Name: s.Version}}, i.Version, ""); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Provider, err)
	}

	return s, nil
}
