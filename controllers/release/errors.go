package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrChanged is returned when the release is no longer as it was observed: nothing was done,
// observe again.
var ErrChanged = errors.New("the release has changed since it was observed")

// Object names an object of a release.
type Object struct {
	schema.GroupVersionKind
	Namespace, Name string
}

// String is for people: kind, namespace and name.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}

	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// PendingError says that another action on the release is under way. Nothing was done.
type PendingError struct {
	Message string
	// Until is when to look again at the latest; zero if the action is this process's own.
	Until time.Time
}

func (e *PendingError) Error() string { return e.Message }

// NoRevisionError says that the history does not have a revision. Nothing was done.
type NoRevisionError struct {
	Release  string // namespace/name
	Revision int
	Present  []int // oldest first
}

func (e *NoRevisionError) Error() string {
	present := make([]string, 0, len(e.Present))
	for _, n := range e.Present {
		present = append(present, strconv.Itoa(n))
	}

	return fmt.Sprintf(
		"release %s has no revision %d that can be returned to; its history has %s",
		e.Release,
		e.Revision,
		strings.Join(present, ", "),
	)
}

// RenderError says that chart and values do not make a manifest: a variable is missing, a value
// does not fit the schema, a template fails. Nothing was done, and nothing can be until chart or
// values change. The reason shows no value.
type RenderError struct {
	Chart, Reason string
	cause         error
}

func (e *RenderError) Error() string {
	return fmt.Sprintf("chart %s cannot be rendered: %s; correct the variables, or the version", e.Chart, e.Reason)
}

// Unwrap gives Helm's error, and with it the post-renderer's. Its message may quote values: it is
// to be asked, not shown.
func (e *RenderError) Unwrap() error { return e.cause }

// UnknownKindError says that the API server does not know kinds that the manifest has. Nothing was
// done.
type UnknownKindError struct{ Objects []Object }

func (e *UnknownKindError) Error() string {
	first := e.Objects[0]

	return fmt.Sprintf("the API server does not know the kind of %s (%s)%s; install the CRD that defines it",
		first, first.GroupVersion(), andMore(len(e.Objects)))
}

// Conflict is an object that belongs to another release.
type Conflict struct {
	Object Object
	// Owner is the release that has it: namespace/name.
	Owner string
}

// ConflictError says that the manifest has objects which belong to other releases. They were not
// touched.
type ConflictError struct {
	Release   string // namespace/name
	Conflicts []Conflict
}

func (e *ConflictError) Error() string {
	first := e.Conflicts[0]

	return fmt.Sprintf("%s belongs to release %s and cannot belong to release %s too%s; uninstall one of them, "+
		"or remove the object's annotations meta.helm.sh/release-name and -namespace", first.Object, first.Owner, e.Release, andMore(len(e.Conflicts)))
}

// ObjectError is what went wrong with an object.
type ObjectError struct {
	Object Object
	// Reason is the API server's, without the values that it quotes.
	Reason string
	cause  error
}

func (e *ObjectError) Error() string { return e.Object.String() + ": " + e.Reason }

// Unwrap gives the API server's error. Its text may quote values: it is to be asked, not shown.
func (e *ObjectError) Unwrap() error { return e.cause }

// RejectedError says which objects the API server refused, and why. Objects of kinds that come
// before theirs in Helm's order have been applied, those after have not, and nothing was pruned.
type RejectedError struct{ Objects []*ObjectError }

func (e *RejectedError) Error() string {
	first := e.Objects[0]

	return fmt.Sprintf(
		"the API server refused %s: %s%s%s",
		first.Object,
		first.Reason,
		andMore(len(e.Objects)),
		remedy(first.cause),
	)
}

// Unwrap gives what went wrong with each object.
func (e *RejectedError) Unwrap() []error { return causes(e.Objects) }

// UnavailableError says with which objects a request failed for a reason that may pass by itself:
// the API server, or a webhook that it asks, does not answer. The rest is as with RejectedError.
type UnavailableError struct{ Objects []*ObjectError }

func (e *UnavailableError) Error() string {
	first := e.Objects[0]
	return fmt.Sprintf("%s could not be applied for now: %s%s", first.Object, first.Reason, andMore(len(e.Objects)))
}

// Unwrap gives what went wrong with each object.
func (e *UnavailableError) Unwrap() []error { return causes(e.Objects) }

// RemoveError says which objects the release no longer has, but could not be deleted.
type RemoveError struct{ Objects []*ObjectError }

func (e *RemoveError) Error() string {
	first := e.Objects[0]

	return fmt.Sprintf(
		"%s could not be deleted: %s%s%s",
		first.Object,
		first.Reason,
		andMore(len(e.Objects)),
		remedy(first.cause),
	)
}

// Unwrap gives what went wrong with each object.
func (e *RemoveError) Unwrap() []error { return causes(e.Objects) }

func causes(objects []*ObjectError) []error {
	errs := make([]error, 0, len(objects))
	for _, o := range objects {
		errs = append(errs, o)
	}

	return errs
}

// StorageError says that a record of the release could not be written. What was applied stays
// applied.
type StorageError struct {
	Record string // the Secret: namespace/name
	Reason string
	cause  error
}

func (e *StorageError) Error() string {
	return fmt.Sprintf("Helm's record in Secret %s could not be stored: %s%s", e.Record, e.Reason, remedy(e.cause))
}

func (e *StorageError) Unwrap() error { return e.cause }

// CorruptError says that the record of a revision cannot be decoded.
type CorruptError struct {
	Record string // the Secret: namespace/name
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf(
		"Helm's record in Secret %s cannot be read: %s; the next upgrade makes a new revision in its place",
		e.Record,
		e.Reason,
	)
}

func andMore(n int) string {
	if n < 2 {
		return ""
	}

	return fmt.Sprintf(" (and %d more)", n-1)
}

// remedy says what helps against an error of the API server, if that is known.
func remedy(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "; grant the operator that right, or lift the policy that forbids it"
	case apierrors.IsNotFound(err):
		return "; create what is missing"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return "; correct the variables or the resource's patches, or take another version"
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook"):
		return "; repair the webhook's server, or delete the webhook's configuration"
	}

	return ""
}

// refused reports whether the API server turned a request down for what it asked, so that asking again
// is of no use.
func refused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}

	code := status.Status().Code

	return code >= 400 && code < 500 && code != 408 && code != 409 && code != 429
}

const maxReason = 1024

// reasonOf tells why the API server refused an object, without quoting values: they may be
// credentials.
func reasonOf(kind string, err error) string {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return shorten(err.Error())
	}

	s := status.Status()
	if s.Details != nil && len(s.Details.Causes) > 0 {
		causes := make([]string, 0, len(s.Details.Causes))
		for _, c := range s.Details.Causes {
			causes = append(causes, strings.TrimPrefix(c.Field+": "+withoutValue(kind, c), ": "))
		}

		return shorten(strings.Join(causes, "; "))
	}

	if kind == "Secret" && s.Reason != metav1.StatusReasonForbidden && s.Reason != metav1.StatusReasonNotFound {
		return string(s.Reason)
	}

	return shorten(s.Message)
}

// quoted is how the API server quotes what it refuses: the kind of error, the value and mostly a
// reason.
var quoted = regexp.MustCompile(`(?s)^(Invalid value|Unsupported value|Duplicate value|Too long|Not found): (.*)$`)

// withoutValue is the message of a cause without the value that it quotes: a Go string, a JSON
// document or a word.
func withoutValue(kind string, c metav1.StatusCause) string {
	match := quoted.FindStringSubmatch(c.Message)
	if match == nil {
		return c.Message
	}

	if kind == "Secret" {
		return match[1]
	}

	rest := match[2]
	if prefix, err := strconv.QuotedPrefix(rest); err == nil {
		rest = rest[len(prefix):]
	} else if d := json.NewDecoder(strings.NewReader(rest)); d.Decode(new(any)) == nil {
		rest = rest[d.InputOffset():]
	} else {
		_, after, _ := strings.Cut(rest, ": ")
		rest = ": " + after
	}

	if rest = strings.TrimLeft(rest, ": "); rest == "" {
		return match[1]
	}

	return rest
}

// enumeration matches a list of names in quotes.
var enumeration = regexp.MustCompile(`'[^']*'(, '[^']*')+`)

// schemaProblems puts what Helm says of values that do not fit a chart's schema into one line and a
// fixed order: it goes through maps, and a condition whose message changed each time would never
// rest. Another message is returned as it is.
func schemaProblems(message string) string {
	var problems []string

	for line := range strings.Lines(message) {
		if problem, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			problems = append(problems, enumeration.ReplaceAllStringFunc(problem, func(names string) string {
				return strings.Join(slices.Sorted(slices.Values(strings.Split(names, ", "))), ", ")
			}))
		}
	}

	if len(problems) == 0 {
		return message
	}

	slices.Sort(problems)

	return "the values do not fit its schema: " + strings.Join(problems, "; ")
}

// excerpt matches what YAML parsers quote of their input.
var excerpt = regexp.MustCompile("`[^`]*`")

// redact takes values out of a message of Helm's: any of them may be a credential.
func redact(message string, values any) string {
	message = excerpt.ReplaceAllString(message, "`…`")
	hidden := texts(values, nil)
	slices.SortFunc(hidden, func(a, b string) int { return len(b) - len(a) }) // one may be part of another

	for _, text := range hidden {
		message = strings.ReplaceAll(message, text, "…")
	}

	return shorten(message)
}

// texts appends to found the strings in values that tell something: shorter ones would blot out
// parts of words.
func texts(values any, found []string) []string {
	const telling = 4

	switch values := values.(type) {
	case map[string]any:
		for _, child := range values {
			found = texts(child, found)
		}
	case []any:
		for _, child := range values {
			found = texts(child, found)
		}
	case string:
		if len(values) >= telling {
			found = append(found, values)
		}
	}

	return found
}

func shorten(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > maxReason {
		return strings.ToValidUTF8(message[:maxReason], "") + " …"
	}

	return message
}
