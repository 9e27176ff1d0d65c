package versions_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/crds/versions"
	"github.com/capstan-project/capstan/controllers/object"
)

type version = apiextensionsv1.CustomResourceDefinitionVersion

func newCRD(all ...version) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Group = "example.com"
	crd.Spec.Names.Plural = "samples"
	crd.Spec.Versions = all

	return crd
}

func TestVersions(t *testing.T) {
	for name, c := range map[string]struct {
		versions  []version
		storage   string
		preferred string
		served    []string
	}{
		"none": {},
		"the storage version is served": {
			versions:  []version{{Name: "v1beta1", Served: true}, {Name: "v1", Served: true, Storage: true}},
			storage:   "v1",
			preferred: "v1",
			served:    []string{"v1beta1", "v1"},
		},
		"the storage version is not served": {
			versions: []version{
				{Name: "v1alpha1"},
				{Name: "v1beta1", Served: true},
				{Name: "v1beta2", Served: true},
				{Name: "v1", Storage: true},
			},
			storage:   "v1",
			preferred: "v1beta1",
			served:    []string{"v1beta1", "v1beta2"},
		},
		"no version is served": {
			versions: []version{{Name: "v1", Storage: true}},
			storage:  "v1",
		},
		"no version is the storage version": {
			versions:  []version{{Name: "v1", Served: true}},
			preferred: "v1",
			served:    []string{"v1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			crd := newCRD(c.versions...)

			g.Expect(versions.StorageName(crd)).To(Equal(c.storage))
			g.Expect(versions.Served(crd)).To(Equal(c.served))

			if c.preferred == "" {
				g.Expect(versions.Preferred(crd)).To(BeNil())
			} else {
				g.Expect(versions.Preferred(crd)).To(HaveField("Name", c.preferred))
			}
		})
	}
}

func TestFind(t *testing.T) {
	g := NewWithT(t)
	crd := newCRD(version{Name: "v1beta1"}, version{Name: "v1"})

	g.Expect(versions.Find(crd, "v1")).To(BeIdenticalTo(&crd.Spec.Versions[1]))
	g.Expect(versions.Find(crd, "v2")).To(BeNil())
}

func TestResource(t *testing.T) {
	NewWithT(t).Expect(versions.Resource(newCRD(), "v1")).
		To(Equal(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "samples"}))
}

func TestConversionProblem(t *testing.T) {
	failed := apierrors.NewInternalError(errors.New("conversion webhook for example.com/v1, Kind=Sample failed: EOF"))
	webhook := func(config *apiextensionsv1.WebhookClientConfig) *apiextensionsv1.CustomResourceConversion {
		return &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: config},
		}
	}

	for name, c := range map[string]struct {
		conversion *apiextensionsv1.CustomResourceConversion
		err        error
		want       string
	}{
		"of a Service": {
			webhook(&apiextensionsv1.WebhookClientConfig{
				Service: &apiextensionsv1.ServiceReference{Namespace: "capx-system", Name: "capx-webhook"},
			}),
			failed,
			"its conversion webhook, Service capx-system/capx-webhook, fails: conversion webhook for " +
				"example.com/v1, Kind=Sample failed: EOF; " + object.ConversionFix(newCRD().Name),
		},
		"of a URL": {
			webhook(&apiextensionsv1.WebhookClientConfig{URL: new("https://converter.test/convert")}),
			apierrors.NewTooManyRequests("storage is (re)initializing", 1),
			"its conversion webhook, https://converter.test/convert, fails: storage is (re)initializing; " +
				object.ConversionFix(newCRD().Name),
		},
		"of none": {
			&apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter},
			apierrors.NewTooManyRequests("storage is (re)initializing", 1), "",
		},
		"of another kind": {
			webhook(&apiextensionsv1.WebhookClientConfig{URL: new("https://converter.test/convert")}),
			apierrors.NewInternalError(errors.New("etcdserver: leader changed")), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			crd := newCRD()
			crd.Spec.Conversion = c.conversion

			NewWithT(t).Expect(versions.ConversionProblem(crd, c.err)).To(Equal(c.want))
		})
	}
}
