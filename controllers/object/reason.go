package object

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxReason limits a reason in bytes: it becomes part of conditions and events.
const maxReason = 1024

// Reason returns why a request for an object of the kind failed, as the API server put it but
// without the values that it quotes, because they may be credentials. Of what it says about a
// Secret, only the kind of error remains.
func Reason(kind string, err error) string {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return OneLine(Text(err), maxReason)
	}

	switch {
	case isUnserved(err):
		return "the API server does not serve its kind any more"
	case isTerminating(err):
		return "its CustomResourceDefinition is being deleted"
	}

	if IsTooLarge(err) {
		return "it is larger than etcd accepts"
	}

	s := status.Status()

	if s.Details != nil && len(s.Details.Causes) > 0 {
		causes := make([]string, 0, len(s.Details.Causes))
		for _, c := range s.Details.Causes {
			causes = append(causes, strings.TrimPrefix(c.Field+": "+withoutValue(kind, c.Message), ": "))
		}

		return OneLine(strings.Join(causes, "; "), maxReason)
	}

	if what, is := untypedMessage(err); is {
		return OneLine(what, maxReason)
	}

	if IsMalformed(err) {
		return "a field has a value that is not in the format of its kind, such as base64"
	}

	if kind == "Secret" && s.Reason != metav1.StatusReasonForbidden && s.Reason != metav1.StatusReasonNotFound {
		return string(s.Reason)
	}

	return OneLine(s.Message, maxReason)
}

// Text returns the text of an error without the URL of a request that the API server has not answered.
func Text(err error) string {
	request := (*url.Error)(nil)
	if !errors.As(err, &request) {
		return err.Error()
	}

	why := "the API server cannot be reached: " + request.Err.Error()
	if request.Timeout() {
		why = "the API server has not answered in time"
	}

	return strings.ReplaceAll(err.Error(), request.Error(), why)
}

// untyped matches the error for an object that is not one of its kind: it has an unknown field, a value of the wrong
// type, or two items with the same key in a list.
var untyped = regexp.MustCompile(`(?s)^failed to create typed patch object \([^)]*\): (.*)$`)

// wrongValue matches the value that such an error quotes.
var wrongValue = regexp.MustCompile(`(?m), got .*$`)

// untypedMessage returns what is wrong with an object that is not one of its kind, without values, and whether that is
// what an error says.
func untypedMessage(err error) (string, bool) {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return "", false
	}

	match := untyped.FindStringSubmatch(status.Status().Message)
	if match == nil {
		return "", false
	}

	return wrongValue.ReplaceAllString(match[1], ""), true
}

func isUntyped(err error) bool {
	_, is := untypedMessage(err)
	return is || IsMalformed(err)
}

// IsMalformed reports whether an error says that a value cannot be decoded, such as base64 of a Secret. The API server
// does not name its field, and its text may quote the value.
func IsMalformed(err error) bool {
	status := apierrors.APIStatus(nil)

	return errors.As(err, &status) &&
		strings.Contains(status.Status().Message, "to proper version: unable to convert unstructured object to ")
}

// isUnserved reports whether an error says that the API server does not serve a kind: it has no such path.
func isUnserved(err error) bool {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}

	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// isTerminating reports whether an object was not created because its CustomResourceDefinition is being deleted.
func isTerminating(err error) bool {
	return apierrors.IsForbidden(err) &&
		strings.Contains(err.Error(), "while custom resource definition is terminating")
}

// quotedValue matches a cause that quotes the value it is about: the type of error, the value and
// usually an explanation.
var quotedValue = regexp.MustCompile(
	`(?s)^(Invalid value|Unsupported value|Duplicate value|Too long|Not found): (.*)$`,
)

// withoutValue returns the message of a cause without the value that it quotes. The API server
// formats values as Go strings, as JSON or as plain words.
func withoutValue(kind, message string) string {
	message, _, _ = strings.Cut(message, "\n") // a difference of values follows

	match := quotedValue.FindStringSubmatch(message)
	if match == nil {
		return message
	}

	errorType, rest := match[1], match[2]
	if kind == "Secret" {
		return errorType // the explanation may quote the value again
	}

	if prefix, err := strconv.QuotedPrefix(rest); err == nil {
		rest = rest[len(prefix):]
	} else if d := json.NewDecoder(strings.NewReader(rest)); d.Decode(new(any)) == nil {
		rest = rest[d.InputOffset():]
	} else {
		_, explanation, _ := strings.Cut(rest, ": ")
		rest = ": " + explanation
	}

	if rest = strings.TrimLeft(rest, ": "); rest == "" {
		return errorType
	}

	return rest
}

// uninitialized is what the API server says while its cache of a kind cannot be filled, before the reason if it knows
// that.
const uninitialized = "storage is (re)initializing"

// IsUnconverted reports whether objects could not be read because the webhook that has to convert them does not work. A
// server that does not say why its cache of the kind cannot be filled may mean that as well.
func IsUnconverted(err error) bool {
	status := apierrors.APIStatus(nil)

	return IsConversion(err) || errors.As(err, &status) && apierrors.IsTooManyRequests(err) &&
		strings.HasSuffix(status.Status().Message, uninitialized)
}

// IsRefusal reports whether the API server refused a request because of its content, so that the
// same request would be refused again. Timeouts, conflicts and rate limits are not refusals.
func IsRefusal(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}

	if isUntyped(err) || IsTooLarge(err) {
		return true
	}

	code := status.Status().Code

	switch code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	}

	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}

// IsTooLarge reports whether etcd refuses an object because of its size: its server, or already its client.
func IsTooLarge(err error) bool {
	if err == nil {
		return false
	}

	text := err.Error()

	return strings.Contains(text, "etcdserver: request is too large") ||
		strings.Contains(text, "code = ResourceExhausted desc = trying to send message larger than max")
}

// IsNotPermitted reports whether a request was refused because its user lacks a permission.
func IsNotPermitted(err error) bool {
	if !apierrors.IsForbidden(err) || IsDenied(err) {
		return false
	}

	text := err.Error()

	return strings.Contains(text, `User "`) || strings.Contains(text, "attempting to grant RBAC permissions")
}

// IsDenied reports whether a policy, a webhook or a quota refused a request that the user is permitted to make. Their
// errors have the same type as those about missing permissions.
func IsDenied(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}

	text := err.Error()

	return strings.Contains(text, "denied the request") || // webhooks
		strings.Contains(text, "denied request: ") || // policies
		strings.Contains(text, "violates PodSecurity") || exceedsQuota(err)
}

// exceedsQuota reports whether a request was refused because of a ResourceQuota.
func exceedsQuota(err error) bool {
	return apierrors.IsForbidden(err) &&
		(strings.Contains(err.Error(), "exceeded quota: ") || strings.Contains(err.Error(), "failed quota: "))
}

// IsConversion reports whether objects cannot be read or written because the conversion webhook of their
// CustomResourceDefinition does not answer, or not as it should.
func IsConversion(err error) bool {
	status := apierrors.APIStatus(nil)

	return errors.As(err, &status) && strings.Contains(status.Status().Message, "conversion webhook for ")
}

// ConversionFix returns the advice for a conversion webhook that does not answer, given the name of the
// CustomResourceDefinition.
func ConversionFix(crd string) string {
	return "repair the webhook's server, or let the API server convert without it: kubectl patch " +
		"customresourcedefinition " + crd + ` --type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'`
}

// Fix returns the advice for an error of the API server, to be appended to a message: it starts with a semicolon. It is
// empty if there is no advice.
func Fix(err error) string {
	switch {
	case IsConversion(err):
		return "; repair the webhook's server, or replace the CustomResourceDefinition's spec.conversion by {strategy: None}"
	case exceedsQuota(err):
		return "; raise the quota, or delete what counts for it"
	case IsDenied(err):
		return "; change the policy or webhook that denies it, or what it checks"
	case IsNotPermitted(err):
		return "; grant that permission, for example with the roles that `capstan permissions` prints"
	case isUnserved(err), isTerminating(err):
		return "; install its CustomResourceDefinition again, or remove the object with spec.patches"
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "because it is being terminated"):
		return "; create the namespace again once it is gone"
	case apierrors.IsForbidden(err):
		return "; lift the policy that forbids it"
	case apierrors.IsNotFound(err):
		return "; create what is missing"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), isUntyped(err), IsTooLarge(err):
		return "; correct the variables or the resource's patches, or choose another version"
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook"):
		return "; repair the webhook's server, or delete the webhook's configuration"
	}

	return ""
}
