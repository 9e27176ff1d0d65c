package lint

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// Folder is a folder with the published files of one version.
type Folder struct {
	Path string
	// Names are the names of all files.
	Names []string
	// Components is the name of the file with the components, which a bundle does not have. It is empty if there is none.
	Components string
}

// Lint checks the files of a folder against all rules. The files of the findings are paths that begin with that of the
// folder. If the parsed components are nil, errors in them are findings.
func (f Folder) Lint(b *bundle.Bundle, components *bundle.Components) []Finding {
	findings := append(Names(b.Provider, f.Names), Bundle(b, components)...)

	for _, unused := range Accept(findings, AcceptedBy(b.Metadata)) {
		if isRule(unused.Rule) {
			findings = append(findings, acceptedRule.finding(location{file: bundle.MetadataFile},
				"accepts "+unused.String()+", which is not found"))
		}
	}

	for i, finding := range findings {
		if finding.File == bundle.ComponentsFile && f.Components != "" {
			finding.File = f.Components
		}

		findings[i].File = Join(f.Path, finding.File)
	}

	return findings
}

// Join returns the path of a file in a folder, which may be an address. The file may be empty.
func Join(folder, file string) string {
	if !strings.Contains(folder, "://") {
		return filepath.Join(folder, file)
	}

	return strings.TrimSuffix(folder+"/"+file, "/")
}

// isRule reports whether there is a rule of that name. Other programs have other rules.
func isRule(name string) bool {
	return slices.ContainsFunc(Rules(), func(rule Rule) bool { return rule.Name == name })
}
