package plan

import (
	"fmt"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint"
)

// Limits of the components that the operator lints. Real providers have at most 200 objects, with 30,000
// values in addition to CRDs. What others publish must not keep the operator busy.
const (
	maxLintedObjects = 500
	maxLintedValues  = 50_000
)

// lintComponents describes how the components of a bundle break the contracts of Cluster API. It returns
// "" if they do not, except for advice. It does not check cluster templates, which are not installed.
func lintComponents(b *bundle.Bundle, components *bundle.Components) string {
	values := 0

	for i := range components.Documents {
		if doc := &components.Documents[i]; !doc.IsCRD() {
			values += count(doc.Object.Object)
		}
	}

	if len(components.Documents) > maxLintedObjects || values > maxLintedValues {
		return ""
	}

	installed := *b
	installed.Templates = nil

	return describe(b, lint.Bundle(&installed, components))
}

// count returns the number of values in a value, including itself.
func count(value any) int {
	n := 1

	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			n += count(item)
		}
	case []any:
		for _, item := range v {
			n += count(item)
		}
	}

	return n
}

// describe formats the findings that are errors or warnings, errors first.
func describe(b *bundle.Bundle, findings []lint.Finding) string {
	var all []lint.Finding

	var texts []string

	for _, level := range []lint.Level{lint.Error, lint.Warning} {
		for _, f := range findings {
			if f.Counts(level) {
				all = append(all, f)
				texts = append(texts, fmt.Sprintf("%s: %s", f.Rule, strings.TrimSpace(f.Kind+" "+f.Object+" "+f.Message)))
			}
		}
	}

	if all == nil {
		return ""
	}

	return fmt.Sprintf("%s %s does not conform to the contracts of Cluster API: %s (`capstan chart lint` has details): %s",
		b.Provider.Label, b.Version, lint.Summary(all), strings.Join(texts, "; "))
}
