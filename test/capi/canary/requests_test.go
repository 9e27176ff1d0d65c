package canary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func parse[T any](t *testing.T, text string) T {
	t.Helper()

	var value T

	NewWithT(t).Expect(yaml.UnmarshalStrict([]byte(text), &value)).To(Succeed())

	return value
}

// TestAnswerOf: a webhook that denies serves, one that is not reached does not.
func TestAnswerOf(t *testing.T) {
	resource := schema.GroupResource{Group: "cluster.x-k8s.io", Resource: "machines"}
	status := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message}}
	}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Machine"}, "canary", nil)
	machines := request{mutated: true, converted: true}

	for name, c := range map[string]struct {
		err     error
		answer  answer
		reached int
	}{
		"accepted": {nil, served, 2},
		"denied": {status(http.StatusForbidden, metav1.StatusReasonForbidden,
			`admission webhook "default.machine.cluster.x-k8s.io" denied the request: no`), served, 1},
		"denied as invalid": {status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
			`admission webhook "validation.machine.cluster.x-k8s.io" denied the request: Machine "x" is invalid`), served, 1},
		"invalid": {invalid, served, 1},
		"connection refused": {apierrors.NewInternalError(errors.New(`failed calling webhook "a.b.c": ` +
			`Post "https://a.b.svc:443/x?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused`)), unreached, 0},
		"no conversion": {status(http.StatusInternalServerError, "",
			`conversion webhook for cluster.x-k8s.io/v1beta1, Kind=Machine failed: Post "https://a.b.svc:443/convert": EOF`),
			unreached, 0},
		"the webhook takes too long": {apierrors.NewTimeoutError("no answer", 1), unreached, 0},
		"too many requests":          {apierrors.NewTooManyRequests("later", 1), unreached, 0},
		"no API server":              {errors.New("dial tcp 127.0.0.1:6443: connect: connection refused"), unreached, 0},
		"no answer in time":          {context.DeadlineExceeded, unreached, 0},
		"not permitted":              {apierrors.NewForbidden(resource, "", errors.New("no")), unsuited, -1},
		"a version that has gone":    {apierrors.NewNotFound(resource, ""), unsuited, -1},
		"no dry run": {apierrors.NewBadRequest(
			`admission webhook "a.b.c" does not support dry run because the sideEffects field is not set`), unsuited, -1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(answerOf(c.err)).To(Equal(c.answer))
			g.Expect(machines.reached(c.err)).To(Equal(c.reached))
		})
	}

	NewWithT(t).Expect(request{validated: true}.reached(invalid)).To(Equal(-1), "it was invalid before webhooks validate")
}

func TestExample(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"nothing required": {`{type: object, properties: {a: {type: string}}}`, `{}`},
		"required":         {`{type: object, required: [a], properties: {a: {type: string}, b: {type: string}}}`, `{a: x}`},
		"least properties": {
			`{type: object, minProperties: 1, properties: {b: {type: boolean}, a: {type: integer}}}`,
			`{a: 1}`,
		},
		"default":           {`{type: string, default: d, enum: [e]}`, `d`},
		"enum":              {`{type: string, enum: [e, f]}`, `e`},
		"length":            {`{type: string, minLength: 3}`, `xxx`},
		"format":            {`{type: string, format: date-time}`, `"2000-01-01T00:00:00Z"`},
		"minimum":           {`{type: integer, minimum: 3}`, `3`},
		"a number or text":  {`{x-kubernetes-int-or-string: true}`, `1`},
		"an empty list":     {`{type: array, items: {type: string}}`, `[]`},
		"a list with items": {`{type: array, minItems: 1, items: {type: object}}`, `[{}]`},
		"too many items": {
			`{type: array, minItems: 4000000000, items: {type: array, minItems: 4000000000, items: {type: object}}}`,
			`[[{}]]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			props := parse[apiextensionsv1.JSONSchemaProps](t, c.schema)
			got, err := json.Marshal(example(&props))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(MatchYAML(c.want))
		})
	}
}

// TestRequests: webhooks that may not be asked, or whose failure is ignored, do not count.
func TestRequests(t *testing.T) {
	crd := parse[apiextensionsv1.CustomResourceDefinition](t, `
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Box, plural: boxes}
  conversion: {strategy: Webhook}
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v1beta1, served: true}
  - {name: v1alpha1}`)

	const boxes = `rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [boxes]}]`

	rule := func(operation, resource string) string {
		return fmt.Sprintf(`{rules: [{operations: [%q], apiGroups: ["*"], apiVersions: ["*"], resources: [%q]}]}`,
			operation, resource)
	}
	onlyConversion := map[string]int{"v1beta1": 1}

	for name, c := range map[string]struct {
		webhook string
		want    map[string]int // number of kinds of webhooks, by version
	}{
		"conversion only":     {`{}`, onlyConversion},
		"equivalent versions": {`{` + boxes + `}`, map[string]int{"v1": 1, "v1beta1": 2}},
		"exact versions":      {`{matchPolicy: Exact, ` + boxes + `}`, map[string]int{"v1": 1, "v1beta1": 1}},
		"all of all":          {rule("*", "*/*"), map[string]int{"v1": 1, "v1beta1": 2}},
		"ignored failures":    {`{failurePolicy: Ignore, ` + boxes + `}`, onlyConversion},
		"some namespaces":     {`{namespaceSelector: {matchLabels: {a: b}}, ` + boxes + `}`, onlyConversion},
		"some objects":        {`{objectSelector: {matchLabels: {a: b}}, ` + boxes + `}`, onlyConversion},
		"conditions":          {`{matchConditions: [{name: a, expression: "true"}], ` + boxes + `}`, onlyConversion},
		"another operation":   {rule("UPDATE", "*"), onlyConversion},
		"another kind":        {rule("CREATE", "cans"), onlyConversion},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			w := &webhooks{
				crds:       []apiextensionsv1.CustomResourceDefinition{crd},
				validating: []admissionv1.MutatingWebhook{parse[admissionv1.MutatingWebhook](t, c.webhook)},
			}
			got := map[string]int{}
			before := 3

			for _, r := range w.requests() {
				got[r.object.GroupVersionKind().Version] = r.webhooks()
				g.Expect(r.webhooks()).To(BeNumerically("<=", before))
				g.Expect(r.object.GetNamespace()).To(Equal(metav1.NamespaceDefault))
				before = r.webhooks()
			}

			g.Expect(got).To(Equal(c.want))
		})
	}
}
