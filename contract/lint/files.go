package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

// fileRules are about the published files and metadata.yaml.
var fileRules = []rule{
	{
		Name:        "provider/name",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#adding-a-provider-to-clusterctl",
		Requirement: "A provider's name is a DNS label, also together with its type, as in control-plane-<name>.",
		Why:         "clusterctl rejects other names, and objects and labels that contain them are invalid.",
		Remedy:      "Choose another name for the provider.",
		Check:       checkProviderName,
	},
	{
		Name:        "provider/version",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#creating-a-provider-repository-on-github",
		Requirement: "The tag of a version is a full semantic version.",
		Why:         "clusterctl cannot order other versions and ignores them.",
		Remedy:      "Use tags of the form vMAJOR.MINOR.PATCH.",
		Check:       checkProviderVersion,
	},
	{
		Name:        "files/required",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#provider-repositories",
		Requirement: "The components and metadata.yaml are published.",
		Why:         "clusterctl and Capstan refuse a version without both.",
		Remedy:      "Publish the missing file.",
		Check:       checkRequiredFiles,
	},
	{
		Name:        "files/templates",
		Level:       contract.Info,
		Contract:    contract.Clusterctl + "#workload-cluster-templates",
		Requirement: "An infrastructure provider publishes cluster templates.",
		Why:         "`clusterctl generate cluster` has no template to use.",
		Remedy:      "Publish a cluster-template.yaml.",
		Check:       checkHasTemplates,
	},
	namesRule,
	{
		Name:        "metadata/valid",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#metadata-yaml",
		Requirement: "metadata.yaml is a Metadata object of clusterctl.cluster.x-k8s.io/v1alpha3 with release series.",
		Why:         "clusterctl rejects the provider.",
		Remedy:      "Fix metadata.yaml.",
		Check:       checkMetadata,
	},
	{
		Name:        "metadata/kind",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#validation-rules",
		Requirement: "metadata.yaml has the kind Metadata.",
		Why:         "clusterctl tolerates a missing kind only for old providers, and may stop doing so.",
		Remedy:      "Add the line `kind: Metadata`.",
		Check: func(p *parsedBundle, report reporter) {
			if p.metadataErr == nil && p.parsedMetadata.Kind == "" {
				report(place{File: bundle.MetadataFile}, "has no kind")
			}
		},
	},
	{
		Name:        "metadata/series",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#metadata-yaml",
		Requirement: "metadata.yaml lists the release series of its version.",
		Why:         "The contract of the version is unknown, so clusterctl does not install it.",
		Remedy:      "Add the series and its contract to releaseSeries.",
		Check:       checkSeries,
	},
	{
		Name:        "metadata/series-entries",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#metadata-yaml",
		Requirement: "metadata.yaml lists each release series once, with its contract.",
		Why: "clusterctl uses the first entry of a series, and cannot install versions of one whose contract it does not " +
			"know.",
		Remedy: "Correct or remove the entry.",
		Check:  checkSeriesEntries,
	},
}

// namesRule is checked in two places: the names of a bundle's templates together with all other
// rules, and by Names the names of all published files, which a bundle does not contain.
var namesRule = rule{
	Name:     "files/names",
	Level:    contract.Warning,
	Contract: contract.Clusterctl + "#naming-conventions",
	Requirement: "Files are named <type>-components.yaml, cluster-template.yaml, cluster-template-<flavor>.yaml or " +
		"clusterclass-<name>.yaml.",
	Why:    "clusterctl does not find a file with another name, or only if it is configured to.",
	Remedy: "Rename the file.",
	Check: func(p *parsedBundle, report reporter) {
		for _, t := range p.templateFiles {
			if !templateName.MatchString(t.name) {
				report(t.whole(), "is not named cluster-template.yaml, cluster-template-<flavor>.yaml, or clusterclass-<name>.yaml")
			}
		}
	},
}

var (
	providerName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	templateName = regexp.MustCompile(`^(cluster-template(-.+)?|clusterclass-.+)\.yaml$`)
	// templateLike matches names that were probably meant to be those of templates.
	templateLike = regexp.MustCompile(`^cluster-?(template|class).*\.ya?ml$`)
)

// Names checks the names of all files that are published with a version of a provider.
func Names(p bundle.Provider, names []string) []contract.Finding {
	var findings []contract.Finding //nolint:prealloc // usually there are none

	expected := v1alpha2.ProviderType(p.Type).ComponentsFile()
	misnamed := expected != "" && !slices.Contains(names, expected) // others are those of other providers

	for _, name := range names {
		var message string

		switch {
		case strings.HasSuffix(name, bundle.ComponentsFile) && misnamed:
			message = fmt.Sprintf("contains the components of %s %s, which should be named %s", p.Type, p.Name, expected)
		case templateLike.MatchString(name) && !bundle.IsTemplate(name):
			message = "looks like a cluster template or a ClusterClass, but is ignored because of its name"
		default:
			continue
		}

		findings = append(findings, namesRule.Finding(place{File: name}, message))
	}

	return findings
}

func checkProviderName(p *parsedBundle, report reporter) {
	at := place{File: bundle.MetadataFile}

	switch label := p.Provider.Label; {
	case !providerName.MatchString(p.Provider.Name):
		report(at, "belongs to the provider %q, which is not a valid name", p.Provider.Name)
	case len(label) > validation.LabelValueMaxLength:
		report(at, "belongs to the provider %q; its label %s has %d characters, %d more than a label may have",
			p.Provider.Name, label, len(label), len(label)-validation.LabelValueMaxLength)
	}
}

func checkProviderVersion(p *parsedBundle, report reporter) {
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(p.Version, "v")); err != nil {
		report(place{File: bundle.MetadataFile}, "belongs to %q, which is not a semantic version", p.Version)
	}
}

func checkRequiredFiles(p *parsedBundle, report reporter) {
	if len(p.Components) == 0 {
		report(place{File: bundle.ComponentsFile}, "is missing")
	}

	if len(p.Metadata) == 0 {
		report(place{File: bundle.MetadataFile}, "is missing")
	}
}

func checkHasTemplates(p *parsedBundle, report reporter) {
	if p.Provider.Type == string(v1alpha2.InfrastructureProviderType) && len(p.templateFiles) == 0 {
		report(place{File: "cluster-template.yaml"}, "is not published, and neither is any other template")
	}
}

func checkMetadata(p *parsedBundle, report reporter) {
	if len(p.Metadata) == 0 {
		return
	}

	if p.metadataErr != nil {
		reportInvalid(report, bundle.MetadataFile, p.metadataErr)
	}
}

func checkSeries(p *parsedBundle, report reporter) {
	v, err := version.ParseSemantic(p.Version)
	if p.metadataErr != nil || err != nil {
		return
	}

	at := place{File: bundle.MetadataFile}
	s := p.parsedMetadata.GetReleaseSeriesForVersion(v)

	switch {
	case s == nil:
		report(at, "does not list the series %d.%d of version %s", v.Major(), v.Minor(), p.Version)
	case !isContractVersion(s.Contract):
		report(at, "maps the series %d.%d to the contract %q, expected one such as v1beta2", s.Major, s.Minor, s.Contract)
	}
}

// checkSeriesEntries checks the entries that the version of the bundle does not use.
func checkSeriesEntries(p *parsedBundle, report reporter) {
	if p.metadataErr != nil {
		return
	}

	at := place{File: bundle.MetadataFile}
	seen := map[string]bool{}

	for _, s := range p.parsedMetadata.ReleaseSeries {
		series := fmt.Sprintf("%d.%d", s.Major, s.Minor)

		switch {
		case seen[series]:
			report(at, "lists the series %s twice", series)
		case !strings.HasPrefix(strings.TrimPrefix(p.Version, "v"), series+".") && !isContractVersion(s.Contract):
			report(at, "maps the series %s to the contract %q, expected one such as v1beta2", series, s.Contract)
		}

		seen[series] = true
	}
}
