package canary

import (
	"cmp"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// webhooks are what the cluster knows of a provider's webhooks.
type webhooks struct {
	crds                 []apiextensionsv1.CustomResourceDefinition
	mutating, validating []admissionv1.MutatingWebhook
}

// request is the creation of an object that webhooks answer.
type request struct {
	object *unstructured.Unstructured
	// mutated, validated and converted are which webhooks the API server asks for it.
	mutated, validated, converted bool
}

// requests returns the requests that the webhooks of a provider answer, those with the most webhooks first.
func (w *webhooks) requests() []request {
	var all []request

	for i := range w.crds {
		crd := &w.crds[i]
		conversion := crd.Spec.Conversion

		for j := range crd.Spec.Versions {
			version := &crd.Spec.Versions[j]
			r := request{
				mutated:   concern(w.mutating, crd, version.Name),
				validated: concern(w.validating, crd, version.Name),
				converted: conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter && !version.Storage,
			}

			if version.Served && r.webhooks() > 0 {
				r.object = objectOf(crd, version)
				all = append(all, r)
			}
		}
	}

	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(b.webhooks(), a.webhooks()) })

	return all
}

func (r request) webhooks() int {
	count := 0

	for _, asked := range []bool{r.mutated, r.validated, r.converted} {
		if asked {
			count++
		}
	}

	return count
}

// reached returns how many kinds of webhooks are known to have answered a request with a result; -1 if it is unsuited.
func (r request) reached(err error) int {
	switch answerOf(err) {
	case unreached:
		return 0
	case unsuited:
		return -1
	}

	if err == nil {
		return r.webhooks()
	}

	if r.mutated || denied(err) {
		return 1
	}

	return -1 // the API server found the object invalid before it asked
}

// concern reports whether the API server asks one of the webhooks when an object is created, and refuses the object
// without an answer. One with a selector may not be asked.
func concern(all []admissionv1.MutatingWebhook, crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(all, func(w admissionv1.MutatingWebhook) bool {
		ignored := w.FailurePolicy != nil && *w.FailurePolicy == admissionv1.Ignore
		if ignored || selects(w.NamespaceSelector) || selects(w.ObjectSelector) || len(w.MatchConditions) > 0 {
			return false
		}

		exact := w.MatchPolicy != nil && *w.MatchPolicy == admissionv1.Exact

		return slices.ContainsFunc(w.Rules, func(r admissionv1.RuleWithOperations) bool {
			creation := slices.Contains(r.Operations, admissionv1.Create) ||
				slices.Contains(r.Operations, admissionv1.OperationAll)

			return creation && includes(r.APIGroups, crd.Spec.Group) && includes(r.Resources, crd.Spec.Names.Plural) &&
				(!exact || includes(r.APIVersions, version))
		})
	})
}

func selects(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
}

func includes(list []string, name string) bool {
	return slices.Contains(list, name) || slices.Contains(list, "*") || slices.Contains(list, "*/*")
}

// objectOf returns an object of a version of a CRD.
func objectOf(
	crd *apiextensionsv1.CustomResourceDefinition,
	version *apiextensionsv1.CustomResourceDefinitionVersion,
) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}

	if version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
		if spec, has := version.Schema.OpenAPIV3Schema.Properties["spec"]; has {
			o.Object["spec"] = example(&spec)
		}
	}

	o.SetAPIVersion(crd.Spec.Group + "/" + version.Name)
	o.SetKind(crd.Spec.Names.Kind)
	o.SetGenerateName("canary-")

	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		o.SetNamespace(metav1.NamespaceDefault)
	}

	return o
}
