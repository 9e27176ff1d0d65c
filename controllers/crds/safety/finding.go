package safety

import (
	"fmt"
	"slices"
	"strings"
)

// Level is the severity of a finding.
type Level string

// Levels, the most severe first.
const (
	// Error means that the change must not be applied: it breaks an existing object, or it could
	// and was not tried.
	Error Level = "Error"
	// Warning means that the change can break something, but is not known to.
	Warning Level = "Warning"
	// Info is worth knowing and breaks nothing.
	Info Level = "Info"
)

// levels are all levels in their order.
var levels = []Level{Error, Warning, Info}

// Finding is one change of a CRD that can break something.
type Finding struct {
	// CRD is its name, e.g. "machines.cluster.x-k8s.io".
	CRD string `json:"crd"`
	// Version of the CRD; empty if the finding is about the CRD as a whole.
	Version string `json:"version,omitempty"`
	// Path of the field, e.g. "spec.hosts[*].address", where [*] is any item of a list or any key
	// of a map.
	Path    string `json:"path,omitempty"`
	Rule    Rule   `json:"rule"`
	Level   Level  `json:"level"`
	Message string `json:"message"`
	// Remedy is what a user can do about it.
	Remedy string `json:"remedy,omitempty"`
	// Affected is the number of objects that the change breaks; see Report.Trials for how many there
	// are.
	Affected int `json:"affected,omitempty"`
	// Examples are a few of the affected objects.
	Examples []Example `json:"examples,omitempty"`
	// UpdatesRejected means that the API server will reject every update of an affected object, even
	// one that leaves the field alone.
	UpdatesRejected bool `json:"updatesRejected,omitempty"`
	// Allowed means that this was an error and that a user accepted it.
	Allowed bool `json:"allowed,omitempty"`
}

// Example is one object that a change breaks.
type Example struct {
	// Namespace is empty for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Fields are the paths of a few of the object's fields that break, e.g. "spec.hosts[2].address".
	Fields []string `json:"fields,omitempty"`
}

// location is what a finding is about: a CRD, one of its versions or a field.
type location struct {
	crd, version, path string
}

// finding returns a finding at the location, with its rule's level and remedy.
func (l location) finding(rule Rule, format string, args ...any) Finding {
	traits := traitsOf(rule)

	return Finding{
		CRD:     l.crd,
		Version: l.version,
		Path:    l.path,
		Rule:    rule,
		Level:   traits.level,
		Message: fmt.Sprintf(format, args...),
		Remedy:  traits.remedy,
	}
}

// String returns the example as namespace/name.
func (e Example) String() string {
	if e.Namespace == "" {
		return e.Name
	}

	return e.Namespace + "/" + e.Name
}

// String returns the finding in one line: the location, the problem, the affected objects and the
// remedy.
func (f Finding) String() string { return f.location() + ": " + f.Text() }

// location returns the CRD, version and path, e.g. "machines.cluster.x-k8s.io v1beta1 spec.version".
func (f Finding) location() string {
	parts := slices.DeleteFunc([]string{f.CRD, f.Version, f.Path}, func(s string) bool { return s == "" })

	return strings.Join(parts, " ")
}

// Text returns the finding without its location.
func (f Finding) Text() string {
	parts := []string{f.Message}

	if f.Affected > 0 {
		parts = append(parts, f.effect())
	}

	if f.Allowed {
		parts = append(parts, "explicitly allowed")
	}

	if f.Remedy != "" {
		parts = append(parts, f.Remedy)
	}

	return strings.Join(parts, "; ")
}

// effect describes what happens to the affected objects.
func (f Finding) effect() string {
	switch traits := traitsOf(f.Rule); {
	case f.UpdatesRejected:
		return "breaks " + f.affectedObjects() + ", and the API server will reject every update"
	case traits.dropsData && traits.errorTypes == nil:
		return "drops data of " + f.affectedObjects()
	default:
		return "breaks " + f.affectedObjects()
	}
}

// affectedObjects names at most two of the affected objects, and the first one's field if it is not
// that of the finding.
func (f Finding) affectedObjects() string {
	named := 1
	text := f.Examples[0].String()

	if len(f.Examples) > 1 {
		named = 2
		text += " and " + f.Examples[1].String()
	}

	if f.Affected > named {
		text = fmt.Sprintf("%d objects, including %s", f.Affected, text)
	}

	if fields := f.Examples[0].Fields; len(fields) > 0 && fields[0] != f.Path {
		text += fmt.Sprintf(" (%s)", fields[0])
	}

	return text
}

// maxQuoted is how much of a definition's own text, such as a default, a message quotes.
const maxQuoted = 240

// quoted returns text from a definition or an error in one line of limited length.
func quoted(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxQuoted {
		return text
	}

	return strings.ToValidUTF8(text[:maxQuoted], "") + "…"
}
