package apply

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers/object"
)

// dryRunChange is what is known of a change that was tried in a dry run.
type dryRunChange struct {
	// later is true if earlier waves are applied before, and may change what the API server accepts.
	later bool
	// defined is true if one of them changes the CRD of the object.
	defined bool
	// brings reports whether the action applies an object, by resource and name.
	brings func(resource, name string) bool
}

// problem returns the error of a dry run if it says that the change itself would be refused, or that this
// could not be found out for a passing reason. It returns nil for errors that say nothing about the change,
// which can then only be tried.
func (c dryRunChange) problem(err error) error {
	if err == nil {
		return nil
	}

	text, about := err.Error(), detailsOf(err)

	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		// Another program has written or created the object since it was read.
		return nil
	case apierrors.IsNotFound(err) && c.bringsMissing(about):
		return nil
	case apierrors.IsForbidden(err) && about.Kind == "pods":
		// What a Pod needs to be admitted, such as its ServiceAccount, may come before it.
		return nil
	case apierrors.IsBadRequest(err) && strings.Contains(text, "does not support dry run"):
		// A webhook with side effects.
		return nil
	case apierrors.IsInternalError(err) && strings.Contains(text, "webhook"):
		// A webhook's server does not answer, which the action may change: it may be the release's own manager.
		return nil
	case c.defined && object.IsRefusal(err), c.later && mayBeAccepted(err):
		// It is tried again before its wave is applied.
		return nil
	}

	return err
}

// bringsMissing reports whether the action applies what was not found: the object itself, which was deleted since it
// was read, or what has to come before it, such as its Namespace. An account may bind only a role that exists, and the
// error for a role is about the binding.
func (c dryRunChange) bringsMissing(about metav1.StatusDetails) bool {
	isRole := strings.HasSuffix(about.Kind, "rolebindings") &&
		(c.brings("clusterroles", about.Name) || c.brings("roles", about.Name))

	return isRole || c.brings(about.Kind, about.Name)
}

// mayBeAccepted reports whether a refusal may be due to what earlier waves bring: a manager with another webhook, a
// policy, a permission or a namespace. That a field is wrong or immutable stays so.
func mayBeAccepted(err error) bool {
	text := err.Error()

	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) ||
		strings.Contains(text, "admission webhook") || strings.Contains(text, "ValidatingAdmissionPolicy")
}

// detailsOf returns what an error is about.
func detailsOf(err error) metav1.StatusDetails {
	var status apierrors.APIStatus

	if errors.As(err, &status) && status.Status().Details != nil {
		return *status.Status().Details
	}

	return metav1.StatusDetails{}
}
