package trial

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

// Report lists what changes of CRDs would break.
type Report struct {
	// Findings are sorted by the number of affected objects.
	Findings []Finding
}

// Finding is one thing that a change of a CRD would break.
type Finding struct {
	// CRD is its name, e.g. "machines.cluster.x-k8s.io".
	CRD string
	Problem
	// Affected is the number of objects that break.
	Affected int
	// Examples are the names of a few of them, with their namespaces.
	Examples []string
	// Allowed means that a user accepts it.
	Allowed bool
	// Unread means that the change was not tried, because the objects cannot be read.
	Unread bool
	// Dropped means that the provider does not include the CRD any more.
	Dropped bool
}

// Problem is a way in which a change of a CRD breaks objects.
type Problem struct {
	// Version of the CRD in which the objects were read, or which is removed.
	Version string
	// Path of the field, e.g. "spec.hosts[*].address", where [*] is any item of a list or any key
	// of a map; empty if the problem is about whole objects.
	Path    string
	Message string
	// Remedy is what a user can do about it.
	Remedy string
}

// unread returns the finding that the objects of a CRD cannot be read, because their conversion fails.
func unread(crd, version string, failure error) Finding {
	return Finding{CRD: crd, Unread: true, Problem: Problem{
		Version: version,
		Message: "its objects cannot be read: " + object.Reason("", failure),
		Remedy:  object.ConversionFix(crd),
	}}
}

// NewReport sorts findings, and marks those about the CRDs that a user allows to break objects, see AllowedCRDs.
func NewReport(findings []Finding, allow []string) *Report {
	for i := range findings {
		findings[i].Allowed = slices.Contains(allow, findings[i].CRD)
	}

	slices.SortStableFunc(findings, func(a, b Finding) int {
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

// Untried reports whether the changes must not be applied only because objects cannot be read, on which they would be
// tried.
func (r *Report) Untried() bool {
	broken := func(f Finding) bool { return !f.Unread }

	return r.Refused() && !slices.ContainsFunc(r.with(false), broken)
}

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

// Message returns a short text for a condition: the first few findings that are not allowed, or else the first few
// allowed ones, and the number of the rest. It counts all findings about dropped CRDs as one.
func (r *Report) Message() string {
	const shown = 3

	findings := r.with(!r.Refused())
	if len(findings) == 0 {
		return "the change of the CustomResourceDefinitions breaks no objects"
	}

	var lines []string

	isDropped := func(f Finding) bool { return f.Dropped }
	if i := slices.IndexFunc(findings, isDropped); i >= 0 {
		lines = append(lines, left(findings)+strings.TrimPrefix(findings[i].String(), findings[i].location()))
		findings = slices.DeleteFunc(findings, isDropped)
	}

	for _, f := range findings[:min(shown, len(findings))] {
		lines = append(lines, f.String())
	}

	if more := len(findings) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}

	return strings.Join(lines, ". ")
}

// maxLeft bounds how many dropped CRDs a message names.
const maxLeft = 10

// Left returns the dropped CRDs that have objects, and which; empty if there are none.
func (r *Report) Left() string { return left(r.Findings) }

func left(findings []Finding) string {
	var dropped []string

	for _, f := range findings {
		if f.Dropped {
			dropped = append(dropped, f.location())
		}
	}

	return object.List(dropped, maxLeft)
}

// String returns the finding in one line: the CRD, version and path, the problem, the affected objects and the
// remedy, or that a user allows it.
func (f Finding) String() string {
	parts := []string{f.location() + ": " + f.Message}

	if f.Affected > 0 && !f.Dropped {
		parts = append(parts, "breaks "+f.affectedObjects())
	}

	if f.Allowed {
		return strings.Join(append(parts, "allowed by the annotation "+v1alpha2.AllowUnsafeCRDAnnotation), "; ")
	}

	return strings.Join(append(parts, f.Remedy), "; ")
}

// location returns what the finding is about: the CRD, version and path, or for a dropped CRD its objects.
func (f Finding) location() string {
	if f.Dropped {
		return f.CRD + " (" + f.affectedObjects() + ")"
	}

	return strings.Join(slices.DeleteFunc([]string{f.CRD, f.Version, f.Path}, func(s string) bool { return s == "" }), " ")
}

// maxExamples is how many affected objects a finding names.
const maxExamples = 2

// count adds an affected object.
func (f *Finding) count(object *unstructured.Unstructured) {
	f.Affected++

	if len(f.Examples) < maxExamples {
		f.Examples = append(f.Examples, strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
	}
}

// affectedObjects names some of the affected objects.
func (f Finding) affectedObjects() string {
	names := strings.Join(f.Examples, " and ")

	switch {
	case f.Affected == maxBroken:
		return fmt.Sprintf("at least %d objects, including %s", f.Affected, names)
	case f.Affected > len(f.Examples):
		return fmt.Sprintf("%d objects, including %s", f.Affected, names)
	default:
		return names
	}
}
