package apply

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-project/capstan/controllers/object"
)

func TestErrorMessages(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	manager := object.Key{GroupVersionKind: deployment, Namespace: "ns", Name: "manager"}
	invalid := apierrors.NewInvalid(
		schema.GroupKind{Kind: "Deployment"},
		"x",
		field.ErrorList{field.Required(field.NewPath("spec"), "")},
	)
	refused := &ObjectError{Object: manager, Reason: "no", cause: invalid}
	timeout := &ObjectError{Object: manager, Reason: "timeout", cause: errors.New("")}

	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"rejected": {
			&RejectedError{Objects: []*ObjectError{refused, refused}},
			"the API server refused Deployment ns/manager: no (and 1 more); " +
				"correct the variables or the resource's patches, or choose another version",
		},
		"unavailable": {
			&UnavailableError{Objects: []*ObjectError{timeout}},
			"Deployment ns/manager could not be applied for now: timeout",
		},
		"unavailable because of a webhook": {
			&UnavailableError{Objects: []*ObjectError{newObjectError(manager, apierrors.NewInternalError(errors.New(
				"conversion webhook for example.com/v1, Kind=Widget failed: EOF")))}},
			"Deployment ns/manager could not be applied for now: conversion webhook for example.com/v1, Kind=Widget failed: " +
				"EOF; repair the webhook's server, or replace the CustomResourceDefinition's spec.conversion by {strategy: None}",
		},
		"not deleted": {
			&RemoveError{Objects: []*ObjectError{timeout}},
			"Deployment ns/manager could not be deleted: timeout",
		},
		"unknown kind": {
			&UnknownKindError{Objects: []object.Key{manager}},
			"the API server does not know the kind of Deployment ns/manager (apps/v1); it is not part of this version of " +
				"Kubernetes: choose another version of the provider, or remove the object with spec.patches",
		},
		"unknown kind of another project": {
			&UnknownKindError{Objects: []object.Key{{GroupVersionKind: widget, Name: "w"}}},
			"the API server does not know the kind of Widget w (example.com/v1); install the CRD that defines it, or " +
				"remove the object with spec.patches",
		},
		"conflict": {
			&ConflictError{Release: "ns/b", Conflicts: []Conflict{{Object: manager, Reason: "belongs to release ns/a"}}},
			"Deployment ns/manager belongs to release ns/a, so release ns/b does not adopt it; delete it or uninstall what " +
				"it belongs to, or set the annotation capstan.dev/adoption-policy: Always on the object in the release " +
				"to take it over",
		},
		"not compared": {
			newCompareError(manager, errors.New("timeout")),
			"Deployment ns/manager: it cannot be compared with the release: timeout",
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tt.err).To(MatchError(tt.want))
		})
	}

	g := NewWithT(t)
	g.Expect(apierrors.IsInvalid(&RejectedError{Objects: []*ObjectError{refused}})).To(BeTrue(), "the cause is kept")
}

func TestRefusalNamesField(t *testing.T) {
	g := NewWithT(t)
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "ns", "name": "credentials"},
		"data": map[string]any{"password": "aHVudGVyMg==", "token": "hunter2!"},
	}}
	undecodable := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "failed to convert new object " +
		"(ns/credentials; /v1, Kind=Secret) to proper version: unable to convert unstructured object to /v1, " +
		"Kind=Secret: error decoding from json: illegal base64 data at input byte 7"}}

	err := (&Client{}).aggregate(Objects{secret}, []error{undecodable})

	g.Expect(err).To(MatchError("the API server refused Secret ns/credentials: the field data.token is a text, expected " +
		"one in base64: encode it with base64 -w0; correct the variables or the resource's patches, or choose another " +
		"version"))
	g.Expect(err).To(BeAssignableToTypeOf(&RejectedError{}))

	rejected := func() *RejectedError {
		target := &RejectedError{}
		_ = errors.As(err, &target)

		return target
	}()
	rejected.Objects[0].Variables = []string{"TOKEN"}
	g.Expect(rejected).To(MatchError(ContainSubstring("; correct the variables TOKEN or the resource's patches")))
}
