package safety

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

// Report is the result of checking one or more changes. Its order is stable: the most severe
// findings first, then by the number of affected objects, CRD, version and field.
type Report struct {
	Findings []Finding `json:"findings"`
	Trials   []Trial   `json:"trials,omitempty"`
}

// Trial describes the objects of one version that a change was tried on.
type Trial struct {
	CRD string `json:"crd"`
	// Version in which the objects were read.
	Version string `json:"version"`
	// Objects is the number of objects that were tried, and Broken the number of them that the
	// change breaks.
	Objects int `json:"objects"`
	Broken  int `json:"broken"`
	// Partial means that the trial ended early because so many objects broke.
	Partial bool `json:"partial,omitempty"`
	// Failed is the reason that the objects could not be read; empty if they could.
	Failed string `json:"failed,omitempty"`
}

// complete reports whether all objects were tried.
func (t *Trial) complete() bool { return t != nil && t.Failed == "" && !t.Partial }

// Count returns the number of findings with a level.
func (r *Report) Count(level Level) int { return len(r.WithLevel(level)) }

// HasErrors reports whether the changes must not be applied.
func (r *Report) HasErrors() bool { return r.Count(Error) > 0 }

// WithLevel returns the findings with a level, in the report's order.
func (r *Report) WithLevel(level Level) []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Level != level })
}

// Problems returns the errors and warnings; none of a nil report.
func (r *Report) Problems() []Finding {
	if r == nil {
		return nil
	}

	return append(r.WithLevel(Error), r.WithLevel(Warning)...)
}

// AllowedCRDs returns the CRDs whose unsafe changes a provider's annotation
// v1alpha2.AllowUnsafeCRDAnnotation allows for a version of the provider. Entries for other versions, and
// those without a version, allow nothing.
func AllowedCRDs(annotations map[string]string, version string) []string {
	entries := strings.FieldsFunc(
		annotations[v1alpha2.AllowUnsafeCRDAnnotation],
		func(r rune) bool { return r == ',' || unicode.IsSpace(r) },
	)

	var names []string

	for _, entry := range entries {
		if name, of, _ := strings.Cut(entry, "@"); of != "" && of == version {
			names = append(names, name)
		}
	}

	return names
}

// Allowance returns the value of the annotation v1alpha2.AllowUnsafeCRDAnnotation that allows all errors of
// the report for a version of the provider.
func (r *Report) Allowance(version string) string {
	var entries []string

	for _, f := range r.WithLevel(Error) {
		if entry := f.CRD + "@" + version; !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
	}

	return strings.Join(entries, ",")
}

// allow turns the errors of the named CRDs into warnings.
func (r *Report) allow(names []string) {
	for i, f := range r.Findings {
		if f.Level == Error && slices.Contains(names, f.CRD) {
			r.Findings[i].Level = Warning
			r.Findings[i].Allowed = true
		}
	}
}

// Allowed returns the findings that would be errors if the annotation did not allow them, as text.
func (r *Report) Allowed() []string {
	var allowed []string

	for _, f := range r.Findings {
		if f.Allowed {
			allowed = append(allowed, f.String())
		}
	}

	return allowed
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(levels, a.Level), slices.Index(levels, b.Level)),
			cmp.Compare(b.Affected, a.Affected),
			cmp.Compare(a.CRD, b.CRD),
			cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Message, b.Message),
		)
	})

	slices.SortFunc(r.Trials, func(a, b Trial) int {
		return cmp.Or(cmp.Compare(a.CRD, b.CRD), cmp.Compare(a.Version, b.Version))
	})
}

// Message returns a short text for a condition: the first few errors, or warnings if there are no
// errors, and the number of the others.
func (r *Report) Message() string {
	const shown = 3

	level := Error
	if !r.HasErrors() {
		level = Warning
	}

	findings := r.WithLevel(level)
	if len(findings) == 0 {
		return "the change of the CustomResourceDefinitions breaks no objects or clients"
	}

	var lines []string
	for _, f := range findings[:min(shown, len(findings))] {
		lines = append(lines, f.String())
	}

	if more := len(findings) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}

	return strings.Join(lines, ". ")
}

// Summary counts the findings, e.g. "1 error, 0 warnings, 2 notes".
func (r *Report) Summary() string {
	return strings.Join([]string{
		object.Count(r.Count(Error), "error"),
		object.Count(r.Count(Warning), "warning"),
		object.Count(r.Count(Info), "note"),
	}, ", ")
}

// String returns the whole report: the summary, then one line for each finding and each trial.
func (r *Report) String() string {
	lines := make([]string, 0, 1+len(r.Findings)+len(r.Trials))
	lines = append(lines, r.Summary())

	for _, f := range r.Findings {
		lines = append(lines, fmt.Sprintf("%-7s %s", f.Level, f))
	}

	for _, t := range r.Trials {
		lines = append(lines, t.String())
	}

	return strings.Join(lines, "\n") + "\n"
}

// String returns the trial in one line.
func (t Trial) String() string {
	resource := t.CRD + " " + t.Version

	switch {
	case t.Failed != "":
		return resource + ": the objects could not be read"
	case t.Partial:
		return fmt.Sprintf("%s: tried on %s; stopped because %d of them break",
			resource, object.Count(t.Objects, "object"), t.Broken)
	default:
		return fmt.Sprintf("%s: tried on %s, of which %d break", resource, object.Count(t.Objects, "object"), t.Broken)
	}
}
