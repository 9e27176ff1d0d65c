package safety

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Level is how bad a finding is.
type Level string

// Levels, worst first.
const (
	// Stop means that the change must not be applied.
	Stop Level = "Stop"
	// Warning means that the change can break something, and nothing is known that it breaks.
	Warning Level = "Warning"
	// Info is worth knowing and breaks nothing.
	Info Level = "Info"
)

// levels in order, worst first.
var levels = []Level{Stop, Warning, Info}

// Finding is one change of a CRD that can break something.
type Finding struct {
	// CRD is its name, e.g. "machines.cluster.x-k8s.io".
	CRD string `json:"crd"`
	// Version of the CRD; empty when the finding is about the whole.
	Version string `json:"version,omitempty"`
	// Path of the field, e.g. "spec.hosts[*].address", where [*] stands for any item of a list or
	// key of a map.
	Path    string `json:"path,omitempty"`
	Rule    Rule   `json:"rule"`
	Level   Level  `json:"level"`
	Message string `json:"message"`
	// Remedy is what a person can do.
	Remedy string `json:"remedy,omitempty"`
	// Affected counts the objects that the change breaks; see Report.Looks for how many there are.
	Affected int `json:"affected,omitempty"`
	// Examples are a few of them.
	Examples []Example `json:"examples,omitempty"`
	// Allowed means that this was a Stop, and that a person allowed it.
	Allowed bool `json:"allowed,omitempty"`

	// stuck means that the API server refuses even updates that leave the field of an affected
	// object as it is.
	stuck bool
	// last is the object that was counted last.
	last *unstructured.Unstructured
}

// Example is one object that a change breaks.
type Example struct {
	// Namespace is empty for objects that have none.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Fields are the object's fields at fault, e.g. "spec.hosts[2].address", a few at most. They
	// hold no values.
	Fields []string `json:"fields,omitempty"`
}

func (e Example) String() string {
	if e.Namespace == "" {
		return e.Name
	}

	return e.Namespace + "/" + e.Name
}

// Look tells of the objects that a change was tried on.
type Look struct {
	CRD string `json:"crd"`
	// Version in which the objects were read.
	Version string `json:"version"`
	// Objects that were looked at, and Broken of them that the change breaks.
	Objects int `json:"objects"`
	Broken  int `json:"broken"`
	// Partial means that so many were broken that the rest was not looked at.
	Partial bool `json:"partial,omitempty"`
	// Failed says why the objects could not be read.
	Failed string `json:"failed,omitempty"`
}

// Report is the judgement of one or more changes. Its order is stable: the worst first, then by
// CRD, version and field.
type Report struct {
	Findings []Finding `json:"findings"`
	Looks    []Look    `json:"looks,omitempty"`
}

// Count says how many findings have a level.
func (r *Report) Count(level Level) int {
	n := 0

	for _, f := range r.Findings {
		if f.Level == level {
			n++
		}
	}

	return n
}

// Stopped reports whether the changes must not be applied.
func (r *Report) Stopped() bool { return r.Count(Stop) > 0 }

// Of are the findings of one level, in the report's order.
func (r *Report) Of(level Level) []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Level != level })
}

// Allowed are the CRDs that a provider's annotation v1alpha2.AllowUnsafeCRDAnnotation names.
func Allowed(annotations map[string]string) []string {
	return strings.FieldsFunc(
		annotations[v1alpha2.AllowUnsafeCRDAnnotation],
		func(r rune) bool { return r == ',' || unicode.IsSpace(r) },
	)
}

// allow makes warnings of the stops of the CRDs that a person named.
func (r *Report) allow(names []string) {
	for i, f := range r.Findings {
		if f.Level == Stop && slices.Contains(names, f.CRD) {
			r.Findings[i].Level, r.Findings[i].Allowed = Warning, true
		}
	}
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(levels, a.Level), slices.Index(levels, b.Level)),
			cmp.Compare(b.Affected, a.Affected),
			strings.Compare(a.CRD, b.CRD), strings.Compare(a.Version, b.Version), strings.Compare(a.Path, b.Path),
			strings.Compare(string(a.Rule), string(b.Rule)), strings.Compare(a.Message, b.Message))
	})
	slices.SortFunc(r.Looks, func(a, b Look) int {
		return cmp.Or(strings.Compare(a.CRD, b.CRD), strings.Compare(a.Version, b.Version))
	})
}

// Message is for a condition: the few worst findings, and how many more there are.
func (r *Report) Message() string {
	const shown = 3

	level := Stop
	if !r.Stopped() {
		level = Warning
	}

	findings := r.Of(level)

	var lines []string
	for _, f := range findings[:min(shown, len(findings))] {
		lines = append(lines, f.String())
	}

	switch n := len(findings) - shown; {
	case len(findings) == 0:
		return "nothing in the CustomResourceDefinitions breaks an object or a client"
	case n > 0:
		lines = append(lines, fmt.Sprintf("and %d more", n))
	}

	return strings.Join(lines, ". ")
}

// String is the whole report: a count, the findings one per line, and the objects that were looked
// at.
func (r *Report) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d stops, %d warnings, %d notes\n", r.Count(Stop), r.Count(Warning), r.Count(Info))

	for _, f := range r.Findings {
		fmt.Fprintf(&text, "%-7s %s\n", f.Level, f)
	}

	for _, l := range r.Looks {
		fmt.Fprintf(&text, "%s\n", l)
	}

	return text.String()
}

// String is the look in one line.
func (l Look) String() string {
	text := fmt.Sprintf("%s %s: %d objects were looked at, %d of them break", l.CRD, l.Version, l.Objects, l.Broken)
	switch {
	case l.Failed != "":
		text = fmt.Sprintf("%s %s: the objects could not be read", l.CRD, l.Version)
	case l.Partial:
		text += ", which is enough; there may be more"
	}

	return text
}

// field is the whole address of a finding, e.g. "machines.cluster.x-k8s.io v1beta1 spec.version".
func (f Finding) field() string {
	return strings.Join(slices.DeleteFunc([]string{f.CRD, f.Version, f.Path}, func(s string) bool { return s == "" }), " ")
}

// String is the finding in one line: where, what, which objects, what to do.
func (f Finding) String() string { return f.field() + ": " + f.Text() }

// Text is the finding without where it is.
func (f Finding) Text() string {
	text := f.Message
	if f.Affected > 0 {
		text += "; " + f.objects()
	}

	if f.Allowed {
		text += "; allowed by a person"
	}

	if f.Remedy != "" {
		text += "; " + f.Remedy
	}

	return text
}

// objects names the objects that a finding breaks.
func (f Finding) objects() string {
	named, text := 1, f.Examples[0].String()
	if len(f.Examples) > 1 {
		named, text = 2, text+" and "+f.Examples[1].String()
	}

	if f.Affected > named {
		text = fmt.Sprintf("%d objects, among them %s", f.Affected, text)
	}

	if fields := f.Examples[0].Fields; len(fields) > 0 && fields[0] != f.Path {
		text += fmt.Sprintf(" (%s)", fields[0])
	}

	switch {
	case f.stuck:
		return "breaks " + text + ", so that no update is accepted any more"
	case ruleTraits[f.Rule].errors == nil && ruleTraits[f.Rule].loses:
		return "takes data from " + text
	}

	return "breaks " + text
}
