package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusal is why the API server refuses a request because of refuse.
const refusal = "a policy protects it"

// rule selects requests for refuse.
func rule(resource string, operations ...admissionv1.OperationType) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: operations,
		Rule:       admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{resource}},
	}
}

// refuse makes the API server refuse requests in a namespace unless an expression is true, until allow is called. It
// returns once it refuses the probe.
func (w *world) refuse(
	ctx context.Context, namespace string, requests admissionv1.RuleWithOperations, unless admissionv1.Validation,
	probe func() error,
) (allow func()) {
	GinkgoHelper()

	unless.Message = refusal
	meta := metav1.ObjectMeta{Name: namespace}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules:     []admissionv1.NamedRuleWithOperations{{RuleWithOperations: requests}},
			},
			Validations: []admissionv1.Validation{unless},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}

	Expect(w.client.Create(ctx, policy)).To(Succeed())
	Expect(w.client.Create(ctx, binding)).To(Succeed())
	Eventually(probe).Should(MatchError(ContainSubstring(refusal)))

	return func() {
		GinkgoHelper()
		Expect(w.client.Delete(ctx, binding)).To(Succeed())
		Expect(w.client.Delete(ctx, policy)).To(Succeed())
	}
}
