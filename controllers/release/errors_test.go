package release

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func invalid(kind string, errs ...*field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, "x", errs)
}

func TestReasonShowsNoValue(t *testing.T) {
	path := field.NewPath("spec", "value")

	const secret = `hunter2: "quoted", {"json": 1}`
	for name, tt := range map[string]struct {
		kind string
		err  error
		want string
	}{
		"a string":        {"Deployment", invalid("Deployment", field.Invalid(path, secret, "must be short")), "spec.value: must be short"},
		"an object":       {"Deployment", invalid("Deployment", field.Invalid(path, map[string]any{"a": secret}, "field is immutable")), "spec.value: field is immutable"},
		"a number":        {"Deployment", invalid("Deployment", field.Invalid(path, -1, "must be positive")), "spec.value: must be positive"},
		"a duplicate":     {"Deployment", invalid("Deployment", field.Duplicate(path, secret)), "spec.value: Duplicate value"},
		"an unsupported":  {"Deployment", invalid("Deployment", field.NotSupported(path, secret, []string{"A", "B"})), `spec.value: supported values: "A", "B"`},
		"a required":      {"Deployment", invalid("Deployment", field.Required(path, "")), "spec.value: Required value"},
		"several":         {"Deployment", invalid("Deployment", field.Required(path, ""), field.Invalid(path, 1, "no")), "spec.value: Required value; spec.value: no"},
		"a Secret's":      {"Secret", invalid("Secret", field.Invalid(path, secret, secret)), "spec.value: Invalid value"},
		"a Secret's text": {"Secret", apierrors.NewBadRequest("cannot decode " + secret), "BadRequest"},
		"a webhook's": {"Deployment", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden,
			Message: `admission webhook "policy" denied the request: no latest`}}, `admission webhook "policy" denied the request: no latest`},
		"another error": {"Deployment", errors.New("connection refused"), "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			reason := reasonOf(tt.kind, fmt.Errorf("wrapped: %w", tt.err))
			if name == "another error" {
				reason = reasonOf(tt.kind, tt.err)
			}

			g.Expect(reason).To(Equal(tt.want))
			g.Expect(reason).NotTo(ContainSubstring("hunter2"))
		})
	}
}

func TestMessagesNameObjectReasonAndRemedy(t *testing.T) {
	object := Object{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "ns", "manager"}

	cause := invalid("Deployment", field.Required(field.NewPath("spec"), ""))
	for want, err := range map[string]error{
		"the API server refused Deployment ns/manager: no (and 1 more); correct the variables or the resource's patches, or take another version": &RejectedError{
			[]*ObjectError{{object, "no", cause}, {object, "no", cause}}},
		"Deployment ns/manager could not be applied for now: timeout": &UnavailableError{[]*ObjectError{{object, "timeout", errors.New("")}}},
		"the API server does not know the kind of Deployment ns/manager (apps/v1); install the CRD that defines it": &UnknownKindError{
			[]Object{object}},
	} {
		NewWithT(t).Expect(err).To(MatchError(want))
	}

	g := NewWithT(t)
	g.Expect(apierrors.IsInvalid(&RejectedError{[]*ObjectError{{object, "no", cause}}})).
		To(BeTrue(), "callers can ask for the cause")
}

func TestRedact(t *testing.T) {
	values := map[string]any{
		"variables": map[string]any{"TOKEN": "s3cret", "LIST": []any{"other-secret", "secret"}, "SHORT": "a"},
	}
	for message, want := range map[string]string{
		"'s3cret' does not match pattern":           "'…' does not match pattern",
		"cannot unmarshal !!str `s3cr...` into map": "cannot unmarshal !!str `…` into map",
		"other-secret and a s3cret":                 "… and a …",
		"many\n  lines":                             "many lines",
	} {
		NewWithT(t).Expect(redact(message, values)).To(Equal(want))
	}
}

func TestSchemaProblemsAreInOrder(t *testing.T) {
	const preamble = "values don't meet the specifications of the schema(s) in the following chart(s):\naws:\n"
	for message, want := range map[string]string{
		preamble + "- at '/variables': missing properties 'B', 'A'\n- at '/a': got number, want string\n": "the values do not fit its schema: " +
			"at '/a': got number, want string; at '/variables': missing properties 'A', 'B'",
		"template: x.yaml:1: it's odd - really": "template: x.yaml:1: it's odd - really",
	} {
		NewWithT(t).Expect(schemaProblems(message)).To(Equal(want))
	}
}
