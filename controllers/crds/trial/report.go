package trial

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Report is what changes of CRDs would break.
type Report struct {
	// Findings are sorted: first those that are not allowed, then by the number of affected objects.
	Findings []Finding
}

// Finding is one thing that a change of a CRD would break.
type Finding struct {
	// CRD is its name, e.g. "machines.cluster.x-k8s.io".
	CRD string
	// Version of the CRD in which the objects were read, or which is removed.
	Version string
	// Path of the field, e.g. "spec.hosts[*].address", where [*] is any item of a list or any key
	// of a map; empty if the finding is about whole objects.
	Path    string
	Message string
	// Remedy is what a user can do about it.
	Remedy string
	// Affected is the number of objects that break.
	Affected int
	// Examples are a few of them.
	Examples []Example
	// UpdatesRejected means that the API server will reject every update of an affected object, even
	// one that leaves the field alone.
	UpdatesRejected bool
	// Allowed means that a user accepts it.
	Allowed bool
}

// Example is one object that a change breaks.
type Example struct {
	// Namespace is empty for cluster-scoped objects.
	Namespace string
	Name      string
	// Fields are the paths of a few of the object's fields that break, e.g. "spec.hosts[2].address".
	Fields []string
}

// NewReport sorts findings, and marks those about the CRDs that a user allows to break objects, see AllowedCRDs.
func NewReport(findings []Finding, allow []string) *Report {
	for i := range findings {
		findings[i].Allowed = slices.Contains(allow, findings[i].CRD)
	}

	slices.SortStableFunc(findings, func(a, b Finding) int {
		if a.Allowed != b.Allowed {
			if a.Allowed {
				return 1
			}

			return -1
		}

		return cmp.Or(
			cmp.Compare(b.Affected, a.Affected),
			cmp.Compare(a.CRD, b.CRD),
			cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Message, b.Message),
		)
	})

	return &Report{Findings: findings}
}

// Refused reports whether the changes must not be applied.
func (r *Report) Refused() bool { return len(r.with(false)) > 0 }

// with returns the findings that are allowed, or those that are not.
func (r *Report) with(allowed bool) []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Allowed != allowed })
}

// Allowed returns the findings that a user allows, as text.
func (r *Report) Allowed() []string {
	allowed := r.with(true)
	texts := make([]string, 0, len(allowed))

	for _, f := range allowed {
		texts = append(texts, f.String())
	}

	return texts
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

// Allowance returns the value of the annotation v1alpha2.AllowUnsafeCRDAnnotation that allows everything in
// the report for a version of the provider.
func (r *Report) Allowance(version string) string {
	var entries []string

	for _, f := range r.Findings {
		if entry := f.CRD + "@" + version; !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
	}

	return strings.Join(entries, ",")
}

// Message returns a short text for a condition: the first few findings that are not allowed, or those that are if
// there are no others, and the number of the rest.
func (r *Report) Message() string {
	const shown = 3

	findings := r.with(!r.Refused())
	if len(findings) == 0 {
		return "the change of the CustomResourceDefinitions breaks no objects"
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

// String returns the finding in one line: the CRD, version and path, the problem, the affected objects and the remedy.
func (f Finding) String() string {
	location := slices.DeleteFunc([]string{f.CRD, f.Version, f.Path}, func(s string) bool { return s == "" })
	parts := []string{strings.Join(location, " ") + ": " + f.Message}

	if f.Affected > 0 {
		parts = append(parts, f.effect())
	}

	if f.Allowed {
		parts = append(parts, "explicitly allowed")
	}

	return strings.Join(append(parts, f.Remedy), "; ")
}

// effect describes what happens to the affected objects.
func (f Finding) effect() string {
	effect := "breaks " + f.affectedObjects()
	if f.UpdatesRejected {
		effect += ", and the API server will reject every update"
	}

	return effect
}

// affectedObjects names at most two of the affected objects, and the first one's field if it is not
// that of the finding.
func (f Finding) affectedObjects() string {
	named := min(len(f.Examples), 2)
	names := make([]string, 0, named)

	for _, example := range f.Examples[:named] {
		names = append(names, example.String())
	}

	text := strings.Join(names, " and ")

	switch {
	case f.Affected == maxBroken:
		text = fmt.Sprintf("at least %d objects, including %s", f.Affected, text)
	case f.Affected > named:
		text = fmt.Sprintf("%d objects, including %s", f.Affected, text)
	}

	if fields := f.Examples[0].Fields; len(fields) > 0 && fields[0] != f.Path {
		text += fmt.Sprintf(" (%s)", fields[0])
	}

	return text
}

// String returns the example as namespace/name.
func (e Example) String() string {
	if e.Namespace == "" {
		return e.Name
	}

	return e.Namespace + "/" + e.Name
}
