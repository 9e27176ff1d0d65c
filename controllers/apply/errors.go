package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/object"
)

// UnknownKindError means that the manifest has objects of kinds that the API server does not know.
// Nothing was done.
type UnknownKindError struct{ Objects []object.Key }

func (e *UnknownKindError) Error() string {
	first := e.Objects[0]

	fix := "install the CRD that defines it, or remove the object with spec.patches"
	if bundle.IsKubernetesGroup(first.Group) {
		fix = "it is not part of this version of Kubernetes: choose another version of the provider, or remove the object " +
			"with spec.patches"
	}

	return fmt.Sprintf("the API server does not know the kind of %s (%s)%s; %s",
		first, first.GroupVersion(), object.AndMore(len(e.Objects)-1), fix)
}

// Conflict is an object that exists and must not be adopted.
type Conflict struct {
	Object object.Key
	// Reason why it must not, such as "belongs to release ns/name".
	Reason string
}

// ConflictError means that the manifest has objects that exist and must not be adopted: they belong to other
// releases, for example. They were not changed.
type ConflictError struct {
	Release   string // namespace/name
	Conflicts []Conflict
}

func (e *ConflictError) Error() string {
	first := e.Conflicts[0]

	return fmt.Sprintf("%s %s, so release %s does not adopt it%s; delete it or uninstall what it belongs to, or set "+
		"the annotation %s: %s on the object in the release to take it over",
		first.Object, first.Reason, e.Release, object.AndMore(len(e.Conflicts)-1),
		v1alpha2.AdoptionPolicyAnnotation, v1alpha2.AdoptionAlways)
}

// ObjectError means that a request for an object failed.
type ObjectError struct {
	Object object.Key
	// Reason is what the API server said, without the values that it quoted.
	Reason string
	// Variables are those that the object has in its chart.
	Variables []string
	cause     error
}

func newObjectError(key object.Key, err error) *ObjectError {
	reason := object.Reason(key.Kind, err)
	if explained := new(notAppliedError); errors.As(err, &explained) {
		reason = explained.Error()
	}

	return &ObjectError{Object: key, Reason: reason, cause: err}
}

// newRefusal is like newObjectError for an object that was refused. It names the field whose value cannot be decoded.
func newRefusal(o *unstructured.Unstructured, err error) *ObjectError {
	e := newObjectError(object.KeyOf(o), err)

	if !object.IsMalformed(err) {
		return e
	}

	if malformed := manifest.CheckType(o); malformed != nil {
		e.Reason = malformed.Error()
	}

	return e
}

// newCompareError returns the error for an object that cannot be compared with its release.
func newCompareError(key object.Key, err error) *ObjectError {
	e := newObjectError(key, err)
	e.Reason = "it cannot be compared with the release: " + e.Reason

	return e
}

func (e *ObjectError) Error() string { return e.Object.String() + ": " + e.Reason }

// Unwrap returns the API server's error. Its text may quote values and must not be shown.
func (e *ObjectError) Unwrap() error { return e.cause }

// fix returns what to do about the error, to follow its text.
func (e *ObjectError) fix() string {
	if namespace := missingNamespace(e.cause); namespace != "" {
		return fmt.Sprintf("; create namespace %s, or set spec.policies.missingNamespaces: %s",
			namespace, v1alpha2.MissingNamespaceCreate)
	}

	fix := object.Fix(e.cause)
	if len(e.Variables) == 0 {
		return fix
	}

	return strings.Replace(fix, "the variables", "the variables "+object.List(e.Variables, maxVariables), 1)
}

// maxVariables is how many variables a message names.
const maxVariables = 5

// missingNamespace returns the namespace that does not exist according to an error; empty if it says something else.
func missingNamespace(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}

	if details := status.Status().Details; details.Kind == "namespaces" {
		return details.Name
	}

	return ""
}

// DryRunError means that the API server would refuse objects. Nothing was done.
type DryRunError struct{ Objects []*ObjectError }

// maxRefusals is how many refused objects a message names.
const maxRefusals = 10

func (e *DryRunError) Error() string {
	first := e.Objects[0]
	others := ""

	for _, other := range e.Objects[1:min(len(e.Objects), maxRefusals)] {
		others += "; " + other.Error()
	}

	return fmt.Sprintf("the API server would refuse %s, so nothing was changed: %s%s%s%s",
		first.Object, first.Reason, others, object.AndMore(len(e.Objects)-maxRefusals), first.fix())
}

// Unwrap returns the error of each object.
func (e *DryRunError) Unwrap() []error { return causes(e.Objects) }

// RejectedError means that the API server refused objects. Objects of kinds that come before theirs
// in Helm's order were applied, later ones were not, and nothing was pruned.
type RejectedError struct{ Objects []*ObjectError }

func (e *RejectedError) Error() string {
	first, others := summarize(e.Objects)
	return fmt.Sprintf("the API server refused %s: %s%s%s", first.Object, first.Reason, others, first.fix())
}

// Unwrap returns the error of each object.
func (e *RejectedError) Unwrap() []error { return causes(e.Objects) }

// MayBeAccepted reports whether all objects may be accepted once what the release has applied before takes effect.
func (e *RejectedError) MayBeAccepted() bool {
	return !slices.ContainsFunc(e.Objects, func(o *ObjectError) bool { return !mayBeAccepted(o.cause) })
}

// UnavailableError means that requests for objects failed for a reason that may go away by itself:
// the API server, or a webhook that it calls, does not respond. Other objects are as with a
// RejectedError.
type UnavailableError struct{ Objects []*ObjectError }

func (e *UnavailableError) Error() string {
	first, others := summarize(e.Objects)
	return fmt.Sprintf("%s could not be applied for now: %s%s%s", first.Object, first.Reason, others, first.fix())
}

// Unwrap returns the error of each object.
func (e *UnavailableError) Unwrap() []error { return causes(e.Objects) }

// RemoveError means that objects which are no longer part of the release could not be deleted, or stay, but could not
// be removed from the release.
type RemoveError struct {
	Objects []*ObjectError
	// Passing is true if all of them failed for a reason that may go away by itself.
	Passing bool
}

func (e *RemoveError) Error() string {
	first, others := summarize(e.Objects)

	problem := "could not be deleted"
	if errors.As(first, new(*leaveError)) {
		problem = "stays, but Helm's label and annotations could not be removed from it"
	}

	return fmt.Sprintf("%s %s: %s%s%s", first.Object, problem, first.Reason, others, object.Fix(first.cause))
}

// Unwrap returns the error of each object.
func (e *RemoveError) Unwrap() []error { return causes(e.Objects) }

// summarize returns the first error and the number of the others as text.
func summarize(objects []*ObjectError) (first *ObjectError, others string) {
	return objects[0], object.AndMore(len(objects) - 1)
}

func causes(objects []*ObjectError) []error {
	errs := make([]error, 0, len(objects))
	for _, o := range objects {
		errs = append(errs, o)
	}

	return errs
}
