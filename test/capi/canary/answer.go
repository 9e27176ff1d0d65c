package canary

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answer is what the result of a request says about the webhooks that it concerns.
type answer int

const (
	// served: the webhooks answered, by accepting the object or by denying it.
	served answer = iota
	// unreached: a webhook did not answer, so the API server refused the request.
	unreached
	// unsuited: the request never came to a webhook.
	unsuited
)

// answerOf returns what the result of a request says.
func answerOf(err error) answer {
	status := apierrors.APIStatus(nil)

	switch {
	case err == nil:
		return served
	case !errors.As(err, &status):
		return unreached // no answer of the API server, which waits for its webhooks
	case denied(err):
		return served
	case apierrors.IsInvalid(err): // validated after mutating webhooks
		return served
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err),
		apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		return unsuited
	}

	return unreached
}

// denied reports whether a webhook answered that it denies a request.
func denied(err error) bool {
	return err != nil && strings.Contains(err.Error(), " denied the request")
}
