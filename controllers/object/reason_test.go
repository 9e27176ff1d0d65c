package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
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

// mistyped returns the API server's error for an object that is not one of its kind.
func mistyped(text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: 500, Message: "failed to create typed patch object (a/b; v1, Kind=Secret): " + text,
	}}
}

// malformed returns the API server's error for a value that cannot be decoded.
func malformed(text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: 500, Message: "failed to convert new object (a/b; /v1, Kind=Secret) to proper version: " +
			"unable to convert unstructured object to /v1, Kind=Secret: error decoding from json: " + text,
	}}
}

func TestReasonQuotesNoValue(t *testing.T) {
	const secret = `hunter2: "quoted", {"json": 1}`

	path := field.NewPath("spec", "value")
	deployment := func(errs ...*field.Error) error { return invalid("Deployment", errs...) }
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code:    403,
		Reason:  metav1.StatusReasonForbidden,
		Message: `admission webhook "policy" denied the request: no latest`,
	}}

	for name, tt := range map[string]struct {
		kind string
		err  error
		want string
	}{
		"string": {
			"Deployment", deployment(field.Invalid(path, secret, "must be short")),
			"spec.value: must be short",
		},
		"object": {
			"Deployment", deployment(field.Invalid(path, map[string]any{"a": secret}, "field is immutable")),
			"spec.value: field is immutable",
		},
		"number": {
			"Deployment", deployment(field.Invalid(path, -1, "must be positive")),
			"spec.value: must be positive",
		},
		"duplicate": {
			"Deployment", deployment(field.Duplicate(path, secret)),
			"spec.value: Duplicate value",
		},
		"unsupported value": {
			"Deployment", deployment(field.NotSupported(path, secret, []string{"A", "B"})),
			`spec.value: supported values: "A", "B"`,
		},
		"difference": {
			"Pod", invalid("Pod", field.Forbidden(path, "is immutable\n  core.PodSpec{\n- Env: \""+secret)),
			"spec.value: Forbidden: is immutable",
		},
		"missing value": {
			"Deployment", deployment(field.Required(path, "")),
			"spec.value: Required value",
		},
		"several causes": {
			"Deployment", deployment(field.Required(path, ""), field.Invalid(path, 1, "no")),
			"spec.value: Required value; spec.value: no",
		},
		"field of a Secret": {
			"Secret", invalid("Secret", field.Invalid(path, secret, secret)),
			"spec.value: Invalid value",
		},
		"text about a Secret": {
			"Secret", apierrors.NewBadRequest("cannot decode " + secret),
			"BadRequest",
		},
		"field of another type": {
			"Secret", mistyped(`.data.pin: expected string, got &value.valueUnstructured{Value:` + secret + `}`),
			".data.pin: expected string",
		},
		"value that cannot be decoded": {
			"Secret", malformed("illegal base64 data in " + secret),
			"a field has a value that is not in the format of its kind, such as base64",
		},
		"items with the same key": {
			"Deployment", mistyped(`.spec.ports: duplicate entries for key [port=53,protocol="TCP"]`),
			`.spec.ports: duplicate entries for key [port=53,protocol="TCP"]`,
		},
		"too large": {
			"Secret", tooLarge("etcdserver: request is too large"),
			"it is larger than etcd accepts",
		},
		"webhook": {
			"Deployment", denied,
			`admission webhook "policy" denied the request: no latest`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reason := Reason(tt.kind, fmt.Errorf("wrapped: %w", tt.err))
			g.Expect(reason).To(Equal(tt.want))
			g.Expect(reason).NotTo(ContainSubstring("hunter2"))
		})
	}
}

// What the API server, and client-go, say of kinds that are not served, are being deleted, or cannot be converted.
var (
	unserved = apierrors.NewGenericServerResponse(http.StatusNotFound, "get",
		schema.GroupResource{Group: "example.com", Resource: "targets"}, "x", "404 page not found", 0, true)
	terminating = apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "targets"}, "x",
		errors.New("create not allowed while custom resource definition is terminating"))
	unconverted = apierrors.NewInternalError(errors.New(
		`conversion webhook for example.com/v1, Kind=Target failed: Post "https://hooks.example.com/convert": EOF`))
	reinitializing = apierrors.NewTooManyRequests(`storage is (re)initializing: conversion webhook for `+
		`example.com/v1, Kind=Target failed: Post "https://hooks.example.com/convert": EOF`, 1)
)

func TestReasonOfKinds(t *testing.T) {
	for want, err := range map[string]error{
		"the API server does not serve its kind any more": unserved,
		"its CustomResourceDefinition is being deleted":   terminating,
	} {
		NewWithT(t).Expect(Reason("Target", fmt.Errorf("wrapped: %w", err))).To(Equal(want))
	}
}

func TestIsConversion(t *testing.T) {
	g := NewWithT(t)

	for _, err := range []error{unconverted, reinitializing} {
		g.Expect(IsConversion(fmt.Errorf("list: %w", err))).To(BeTrue())
	}

	for _, err := range []error{nil, unserved, errors.New("conversion webhook for x failed"),
		apierrors.NewTooManyRequests("storage is (re)initializing", 1)} {
		g.Expect(IsConversion(err)).To(BeFalse())
	}
}

// TestText: the URL of a request without an answer, which is that of the API server, is left out. A server that the API
// server has asked is named.
func TestText(t *testing.T) {
	failed := func(cause error) error {
		return fmt.Errorf("read Secret a/b: %w", &url.Error{
			Op: "Get", URL: "https://10.0.0.1:443/api/v1/namespaces/a/secrets/b?timeout=30s", Err: cause,
		})
	}

	for want, err := range map[string]error{
		"read Secret a/b: the API server has not answered in time": failed(context.DeadlineExceeded),
		"read Secret a/b: the API server cannot be reached: EOF":   failed(io.EOF),
		"list: " + unconverted.Error():                             fmt.Errorf("list: %w", unconverted),
		"one\nread Secret a/b: the API server has not answered in time": errors.Join(
			errors.New("one"), failed(os.ErrDeadlineExceeded)),
		"not JSON": errors.New("not JSON"),
	} {
		NewWithT(t).Expect(Text(err)).To(Equal(want))
		NewWithT(t).Expect(Reason("Secret", err)).NotTo(ContainSubstring("10.0.0.1"))
	}
}

// tooLarge returns an error of etcd as the API server passes it on.
func tooLarge(text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: text,
	}}
}

func TestReasonOfOtherErrors(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Reason("Deployment", errors.New("connection\nrefused"))).To(Equal("connection refused"))
	g.Expect(len(Reason("Deployment", errors.New(strings.Repeat("long ", 1000))))).To(BeNumerically("<", 1100))
}

func TestIsUnconverted(t *testing.T) {
	const webhook = `conversion webhook for a.test/v1, Kind=Thing failed: Post "https://b.c.svc:443/?timeout=30s": EOF`

	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"an object":                   {apierrors.NewInternalError(errors.New(webhook)), true},
		"a list":                      {apierrors.NewTooManyRequests("storage is (re)initializing: "+webhook, 1), true},
		"a list, by an older server":  {apierrors.NewTooManyRequests("storage is (re)initializing", 1), true},
		"wrapped":                     {fmt.Errorf("list: %w", apierrors.NewInternalError(errors.New(webhook))), true},
		"a cache that waits for etcd": {apierrors.NewTooManyRequests("storage is (re)initializing: etcd is down", 1), false},
		"too many requests":           {apierrors.NewTooManyRequests("slow down", 1), false},
		"another error of the server": {apierrors.NewInternalError(errors.New("etcdserver: leader changed")), false},
		"no answer of the API server": {errors.New(webhook), false},
		"none":                        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(IsUnconverted(tt.err)).To(Equal(tt.want))
		})
	}
}

func TestIsRefusal(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}

	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"invalid":           {invalid("Pod"), true},
		"forbidden":         {apierrors.NewForbidden(pods, "x", nil), true},
		"wrapped":           {fmt.Errorf("apply: %w", apierrors.NewBadRequest("no")), true},
		"conflict":          {apierrors.NewConflict(pods, "x", nil), false},
		"too many requests": {apierrors.NewTooManyRequests("slow down", 1), false},
		"request timeout":   {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 408}}, false},
		"not of its kind":   {mistyped(".spec.a: field not declared in schema"), true},
		"malformed":         {malformed("illegal base64 data"), true},
		"too large":         {tooLarge("etcdserver: request is too large"), true},
		"too large to send": {tooLarge("rpc error: code = ResourceExhausted desc = trying to send message larger than max " +
			"(2597398 vs. 2097152)"), true},
		"server error": {apierrors.NewInternalError(errors.New("down")), false},
		"no answer":    {errors.New("connection refused"), false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(IsRefusal(tt.err)).To(Equal(tt.want))
		})
	}
}

func TestIsNotPermitted(t *testing.T) {
	roles := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}

	for text, want := range map[string]bool{
		`User "a" cannot patch resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "b"`: true,
		`User "operator" cannot impersonate resource "serviceaccounts"`:                                        true,
		`user "a" (groups=["b"]) is attempting to grant RBAC permissions not currently held: {}`:               true,
		`unable to create new content in namespace b because it is being terminated`:                           false,
		`admission webhook "c" denied the request: User "a" may not`:                                           false,
	} {
		NewWithT(t).Expect(IsNotPermitted(apierrors.NewForbidden(roles, "x", errors.New(text)))).To(Equal(want), text)
	}

	NewWithT(t).Expect(IsNotPermitted(apierrors.NewBadRequest(`User "a" is unknown`))).To(BeFalse())
}

func TestFix(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}

	for want, err := range map[string]error{
		"grant that permission": apierrors.NewForbidden(pods, "x", errors.New(`User "a" cannot get resource "pods"`)),
		"lift the policy":       apierrors.NewForbidden(pods, "x", errors.New("no PriorityClass was found")),
		"create the namespace again": apierrors.NewForbidden(pods, "x", errors.New(
			"unable to create new content in namespace b because it is being terminated")),
		"install its CustomResourceDefinition again":                                             terminating,
		"install its CustomResourceDefinition":                                                   unserved,
		"repair the webhook's server, or replace the CustomResourceDefinition's spec.conversion": reinitializing,

		"create what is missing": apierrors.NewNotFound(pods, "x"),

		"raise the quota": apierrors.NewForbidden(pods, "x",
			errors.New("exceeded quota: q, requested: pods=1")),
		"change the policy or webhook": apierrors.NewForbidden(pods, "x",
			errors.New("ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request: it must stay")),
		"correct the variables":        invalid("Pod"),
		"correct the variables or ":    mistyped(".spec.a: field not declared in schema"),
		"correct the variables or the": tooLarge("etcdserver: request is too large"),
		"repair the webhook's server":  apierrors.NewInternalError(errors.New("failed calling webhook x")),
	} {
		NewWithT(t).Expect(Fix(err)).To(HavePrefix("; " + want))
	}

	NewWithT(t).Expect(Fix(errors.New("connection refused"))).To(BeEmpty())
}
