package asks

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/problem"
)

// values are the policies: the values of each annotation, from that which allows the least to that which allows the
// most, and the one that applies without an annotation.
var values = []struct {
	annotation string
	allowed    []string
	standard   string
}{
	{v1alpha2.AdoptionPolicyAnnotation, []string{
		string(v1alpha2.AdoptionNever), string(v1alpha2.AdoptionIfUnowned), string(v1alpha2.AdoptionAlways),
	}, string(v1alpha2.AdoptionIfUnowned)},
	{v1alpha2.UpdatePolicyAnnotation, []string{
		string(v1alpha2.UpdateOnce), string(v1alpha2.UpdateAlways),
	}, string(v1alpha2.UpdateAlways)},
	{v1alpha2.DeletePolicyAnnotation, []string{
		string(v1alpha2.DeleteOrphan), string(v1alpha2.DeleteObject),
	}, string(v1alpha2.DeleteObject)},
	{v1alpha2.RecreatePolicyAnnotation, []string{
		string(v1alpha2.RecreateNever), string(v1alpha2.RecreateIfSafe), string(v1alpha2.RecreateAlways),
	}, string(v1alpha2.RecreateIfSafe)},
	{v1alpha2.MissingNamespacePolicyAnnotation, []string{
		string(v1alpha2.MissingNamespaceRefuse), string(v1alpha2.MissingNamespaceCreate),
	}, string(v1alpha2.MissingNamespaceRefuse)},
}

// checkPolicies returns a *problem.Error if a policy of one of the objects is unknown.
func checkPolicies(objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		annotations := o.GetAnnotations()

		for _, known := range values {
			value, annotated := annotations[known.annotation]
			if annotated && !slices.Contains(known.allowed, value) {
				return problem.Fail(v1alpha2.InstallFailedReason, "the annotation %s of %s must be one of %s",
					known.annotation, object.KeyOf(o), strings.Join(known.allowed, ", "))
			}
		}
	}

	return nil
}

// AdoptionProblem returns why an object of the cluster must not become part of a release that defines it; empty if it
// may. owner is the other release that it belongs to, if any.
func AdoptionProblem(desired, live metav1.Object, owner string) string {
	controller := metav1.GetControllerOf(live)

	switch policy := adoption(desired); {
	case policy == v1alpha2.AdoptionAlways:
		return ""
	case policy == v1alpha2.AdoptionNever:
		return "exists and does not belong to the release, and its annotation " + v1alpha2.AdoptionPolicyAnnotation +
			" is " + string(policy)
	case owner != "":
		return "belongs to release " + owner
	case controller != nil && !object.PredecessorOwns(live):
		return "is controlled by " + object.Name(controller.Kind, "", controller.Name)
	default:
		return ""
	}
}

func adoption(desired metav1.Object) v1alpha2.AdoptionPolicy {
	return v1alpha2.AdoptionPolicy(desired.GetAnnotations()[v1alpha2.AdoptionPolicyAnnotation])
}

// IsAppliedOnce reports whether an object is left as it is once it belongs to the release.
func IsAppliedOnce(desired metav1.Object) bool {
	return desired.GetAnnotations()[v1alpha2.UpdatePolicyAnnotation] == string(v1alpha2.UpdateOnce)
}

// IsOrphaned reports whether an object stays in the cluster, without belonging to the release, instead of being
// deleted.
func IsOrphaned(live metav1.Object) bool {
	return live.GetAnnotations()[v1alpha2.DeletePolicyAnnotation] == string(v1alpha2.DeleteOrphan)
}

// Recreate returns whether an object may be deleted and created again to change an immutable field.
func Recreate(desired metav1.Object) v1alpha2.RecreatePolicy {
	return v1alpha2.RecreatePolicy(desired.GetAnnotations()[v1alpha2.RecreatePolicyAnnotation])
}

// CreatesNamespace reports whether the namespace of an object is created if it does not exist.
func CreatesNamespace(desired metav1.Object) bool {
	return desired.GetAnnotations()[v1alpha2.MissingNamespacePolicyAnnotation] == string(v1alpha2.MissingNamespaceCreate)
}

// Defaults returns the annotations that the objects of a release have unless they have others; nil for none. The
// policies that apply without annotations are left out.
func Defaults(spec *v1alpha2.PoliciesSpec) map[string]string {
	if spec == nil {
		return nil
	}

	defaults := map[string]string{}

	for i, value := range of(spec) {
		if value != "" && value != values[i].standard {
			defaults[values[i].annotation] = value
		}
	}

	return defaults
}

// of returns the policies of a spec, in the order of values.
func of(spec *v1alpha2.PoliciesSpec) []string {
	return []string{
		string(spec.Adoption), string(spec.Update), string(spec.Delete), string(spec.Recreate),
		string(spec.MissingNamespaces),
	}
}

// Bound returns the annotations of an object of a publisher that allow more than the spec does, with the values that
// they have instead. The spec may be nil. What is not a policy is left to Check.
func Bound(annotations map[string]string, spec *v1alpha2.PoliciesSpec) map[string]string {
	most := of(cmp.Or(spec, &v1alpha2.PoliciesSpec{}))
	bounded := map[string]string{}

	for i, known := range values {
		bound := cmp.Or(most[i], known.standard)

		if asked := annotations[known.annotation]; slices.Index(known.allowed, asked) > slices.Index(known.allowed, bound) {
			bounded[known.annotation] = bound
		}
	}

	return bounded
}
