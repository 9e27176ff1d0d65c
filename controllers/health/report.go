package health

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/controllers/object"
)

// Report is the health of a set of objects, in the order in which they were given.
type Report struct {
	Objects []ObjectHealth
	// Unwatched are the kinds of objects that the operator may not watch.
	Unwatched []string
}

// ObjectHealth is an object with its health.
type ObjectHealth struct {
	Object object.Key
	Result
}

// Describe returns why the object is not healthy. It leaves out the given namespace. For a workload whose pods do not
// run it names the cause first, because readers may see only the beginning.
func (h ObjectHealth) Describe(namespace string) string {
	shown := h.Object
	if shown.Namespace == namespace {
		shown.Namespace = ""
	}

	switch {
	case !h.NamesPod:
		return fmt.Sprintf("%s: %s", shown, h.Message)
	case shown.Namespace == "":
		return h.Message
	}

	return fmt.Sprintf("%s in namespace %s", h.Message, shown.Namespace)
}

// Healthy reports whether all objects are healthy.
func (r Report) Healthy() bool { return len(r.Unhealthy()) == 0 }

// Verdict is what follows from the health of objects.
type Verdict string

// The verdicts.
const (
	// Ready: all objects are healthy.
	Ready Verdict = "Ready"
	// Wait: objects are not healthy, and may become so.
	Wait Verdict = "Wait"
	// Stop: an object cannot become healthy, however long one waits.
	Stop Verdict = "Stop"
)

// Verdict returns what follows from the report.
func (r Report) Verdict() Verdict {
	switch {
	case r.Healthy():
		return Ready
	case slices.ContainsFunc(r.Objects, func(h ObjectHealth) bool { return h.Final }):
		return Stop
	default:
		return Wait
	}
}

// Failed reports whether an object will probably not become healthy by itself.
func (r Report) Failed() bool {
	return slices.ContainsFunc(r.Objects, func(h ObjectHealth) bool { return h.Status == status.FailedStatus })
}

// Unhealthy returns the objects that are not healthy.
func (r Report) Unhealthy() []ObjectHealth {
	return slices.DeleteFunc(slices.Clone(r.Objects), ObjectHealth.Healthy)
}

// Finished returns the Jobs that have completed.
func (r Report) Finished() []object.Key {
	return r.keys(func(h ObjectHealth) bool { return h.Finished })
}

// Missing returns the objects that do not exist.
func (r Report) Missing() []object.Key {
	return r.keys(func(h ObjectHealth) bool { return h.Status == status.NotFoundStatus })
}

// keys returns the objects that match.
func (r Report) keys(match func(ObjectHealth) bool) []object.Key {
	var found []object.Key

	for _, h := range r.Objects {
		if match(h) {
			found = append(found, h.Object)
		}
	}

	return found
}

// Late describes the objects whose drift is noticed late; empty if there are none.
func (r Report) Late() string {
	if len(r.Unwatched) == 0 {
		return ""
	}

	return fmt.Sprintf("%s objects are not watched, but looked at every %.0f minutes",
		strings.Join(r.Unwatched, ", "), pollTime.Minutes())
}

// Message names the first objects that are not healthy, with the reasons, and how many more there are. The namespace
// goes without saying.
func (r Report) Message(namespace string) string {
	const shown = 3

	unhealthy := r.Unhealthy()

	var parts []string
	for _, h := range unhealthy[:min(shown, len(unhealthy))] {
		parts = append(parts, h.Describe(namespace))
	}

	if more := len(unhealthy) - shown; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}

	return strings.Join(parts, "; ")
}
