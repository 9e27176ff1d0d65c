package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// The contracts' pages.
const (
	clusterctlContract   = "https://cluster-api.sigs.k8s.io/developer/providers/contracts/clusterctl"
	controlPlaneContract = "https://cluster-api.sigs.k8s.io/developer/providers/contracts/control-plane"
)

// fileRules are about the release and metadata.yaml.
var fileRules = []Rule{
	{
		Name:        "provider/name",
		Level:       Error,
		Requirement: "001-04",
		Contract:    clusterctlContract + "#adding-a-provider-to-clusterctl",
		Demand:      "A provider's name consists of lower case letters, digits and '-', begins and ends with a letter or digit and has 63 characters at most.",
		Why:         "clusterctl refuses other names, and objects and labels made from them are invalid.",
		Remedy:      "Choose another name for the provider.",
		check:       checkProviderName,
	},
	{
		Name:        "provider/version",
		Level:       Error,
		Requirement: "001-06",
		Contract:    clusterctlContract + "#creating-a-provider-repository-on-github",
		Demand:      "A release is tagged with a full semantic version.",
		Why:         "clusterctl cannot order other versions and does not see the release.",
		Remedy:      "Tag the release vMAJOR.MINOR.PATCH.",
		check:       checkProviderVersion,
	},
	{
		Name: "files/required", Level: Error, Requirement: "001-01", Contract: clusterctlContract + "#provider-repositories",
		Demand: "A release holds the components and metadata.yaml.",
		Why:    "Nothing can install the provider without both.",
		Remedy: "Publish the missing file with the release.",
		check:  checkRequiredFiles,
	},
	{
		Name:        "files/templates",
		Level:       Info,
		Requirement: "001-01",
		Contract:    clusterctlContract + "#workload-cluster-templates",
		Demand:      "An infrastructure provider publishes cluster templates beside its components.",
		Why:         "`clusterctl generate cluster` has nothing to begin with.",
		Remedy:      "Publish a cluster-template.yaml.",
		check:       checkHasTemplates,
	},
	namesRule,
	{
		Name:        "metadata/valid",
		Level:       Error,
		Requirement: "001-12",
		Contract:    clusterctlContract + "#metadata-yaml",
		Demand:      "metadata.yaml is a Metadata of clusterctl.cluster.x-k8s.io/v1alpha3 that lists release series with their contracts.",
		Why:         "clusterctl refuses the provider.",
		Remedy:      "Correct metadata.yaml.",
		check:       checkMetadata,
	},
	{
		Name: "metadata/kind", Level: Warning, Requirement: "001-12", Contract: clusterctlContract + "#validation-rules",
		Demand: "metadata.yaml says what it is: kind Metadata.",
		Why:    "clusterctl tolerates a missing kind for old providers only, and may stop to.",
		Remedy: "Add the line `kind: Metadata`.",
		check: func(r *release, report reporter) {
			if r.metadataErr == nil && r.metadata.Kind == "" {
				report(place{file: bundle.MetadataFile}, "has no kind")
			}
		},
	},
	{
		Name: "metadata/series", Level: Error, Requirement: "001-13", Contract: clusterctlContract + "#metadata-yaml",
		Demand: "metadata.yaml lists the release series of the version that it is published with.",
		Why:    "Nobody knows the version's contract, so clusterctl refuses to install it.",
		Remedy: "Add the series, with its contract, to releaseSeries.",
		check:  checkSeries,
	},
}

// namesRule is checked on a folder's listing, which a bundle does not have; see Names. The bundle's
// templates are checked with the rest.
var namesRule = Rule{
	Name:        "files/names",
	Level:       Warning,
	Requirement: "001-17",
	Contract:    clusterctlContract + "#naming-conventions",
	Demand:      "Files have the names that the contract gives them: <type>-components.yaml, cluster-template.yaml, cluster-template-<flavor>.yaml, clusterclass-<name>.yaml.",
	Why:         "clusterctl does not find a file by any other name, or only after configuration.",
	Remedy:      "Rename the file.",
	check: func(r *release, report reporter) {
		for _, t := range r.templates {
			if !templateName.MatchString(t.name) {
				report(
					t.whole(),
					"is neither cluster-template.yaml nor cluster-template-<flavor>.yaml nor clusterclass-<name>.yaml",
				)
			}
		}
	},
}

var (
	providerName    = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	contractVersion = regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`)
	templateName    = regexp.MustCompile(`^(cluster-template(-.+)?|clusterclass-.+)\.yaml$`)
	// templateLike are names that somebody meant for templates.
	templateLike = regexp.MustCompile(`^cluster-?(template|class).*\.ya?ml$`)
)

// Names checks the names of all files of a release, which a bundle does not keep.
func Names(p bundle.Provider, names []string) []Finding {
	var findings []Finding //nolint:prealloc // hardly a release has one

	expected := v1alpha2.ProviderType(p.Type).ComponentsFile()

	for _, name := range names {
		var message string

		switch {
		case strings.HasSuffix(name, bundle.ComponentsFile) && name != expected && expected != "":
			message = fmt.Sprintf("holds the components of %s %s, which are called %s", p.Type, p.Name, expected)
		case templateLike.MatchString(name) && !strings.HasPrefix(name, "cluster-template") && !strings.HasPrefix(name, "clusterclass-"):
			message = "looks like a template or a ClusterClass, and nobody reads it by that name"
		default:
			continue
		}

		findings = append(findings, namesRule.finding(place{file: name}, message))
	}

	return findings
}

func checkProviderName(r *release, report reporter) {
	if !providerName.MatchString(r.Provider.Name) {
		report(place{file: bundle.MetadataFile}, "%q is not a provider's name", r.Provider.Name)
	}
}

func checkProviderVersion(r *release, report reporter) {
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(r.Version, "v")); err != nil {
		report(place{file: bundle.MetadataFile}, "%q is not a semantic version", r.Version)
	}
}

func checkRequiredFiles(r *release, report reporter) {
	for name, data := range map[string][]byte{bundle.ComponentsFile: r.Components, bundle.MetadataFile: r.Metadata} {
		if len(data) == 0 {
			report(place{file: name}, "is missing")
		}
	}
}

func checkHasTemplates(r *release, report reporter) {
	if r.Provider.Type == string(v1alpha2.InfrastructureProviderType) && len(r.templates) == 0 {
		report(place{file: "cluster-template.yaml"}, "is not published, and no other template either")
	}
}

func checkMetadata(r *release, report reporter) {
	if len(r.Metadata) == 0 {
		return
	}

	if r.metadataErr != nil {
		at, reason := invalid(bundle.MetadataFile, r.metadataErr)
		report(at, "%s", reason)

		return
	}

	const apiVersion = "clusterctl.cluster.x-k8s.io/v1alpha3"
	if r.metadata.APIVersion != apiVersion {
		report(place{file: bundle.MetadataFile}, "has apiVersion %q, expected %s", r.metadata.APIVersion, apiVersion)
	}

	for _, s := range r.metadata.ReleaseSeries {
		if !contractVersion.MatchString(s.Contract) {
			report(
				place{file: bundle.MetadataFile},
				"series %d.%d has the contract %q, expected one such as v1beta2",
				s.Major,
				s.Minor,
				s.Contract,
			)
		}
	}
}

func checkSeries(r *release, report reporter) {
	if r.metadataErr != nil {
		return
	}

	type series struct{ major, minor uint64 }

	var seen []series
	for _, s := range r.metadata.ReleaseSeries {
		if s := (series{s.Major, s.Minor}); slices.Contains(seen, s) {
			report(place{file: bundle.MetadataFile}, "lists the series %d.%d twice", s.major, s.minor)
		} else {
			seen = append(seen, s)
		}
	}

	if v, err := semver.NewVersion(r.Version); err == nil && !slices.Contains(seen, series{v.Major(), v.Minor()}) {
		report(
			place{file: bundle.MetadataFile},
			"does not list the series %d.%d, to which %s belongs",
			v.Major(),
			v.Minor(),
			r.Version,
		)
	}
}
