package release_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/release"
)

// deny makes the API server refuse an operation on a resource in a namespace with a message, unless a CEL expression is
// true.
func deny(
	ctx context.Context, namespace string,
	operation admissionv1.OperationType, resource schema.GroupResource, unless, message string,
) {
	GinkgoHelper()

	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{operation},
					Rule: admissionv1.Rule{
						APIGroups: []string{resource.Group}, APIVersions: []string{"v1"}, Resources: []string{resource.Resource},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: "request.namespace != '" + namespace + "' || " + unless,
				Message:    message,
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	policies := client.AdmissionregistrationV1()

	_, err := policies.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())

	DeferCleanup(func(ctx SpecContext) {
		run(ctx, "kubectl", "delete", "--ignore-not-found",
			"validatingadmissionpolicybinding,validatingadmissionpolicy", namespace)
	})
}

// denyIngresses makes the API server refuse the Ingresses of a namespace, unless a CEL expression is true.
func denyIngresses(ctx context.Context, namespace, unless string) {
	GinkgoHelper()

	ingresses := schema.GroupResource{Group: networkingv1.GroupName, Resource: "ingresses"}
	deny(ctx, namespace, admissionv1.Create, ingresses, unless, "no Ingress is allowed here")

	probe := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"},
		Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "any", Port: networkingv1.ServiceBackendPort{Number: 80}},
		}},
	}

	Eventually(func() error {
		_, err := client.NetworkingV1().Ingresses(namespace).Create(ctx, probe, metav1.CreateOptions{})
		return err
	}).Should(MatchError(ContainSubstring("no Ingress is allowed here")), "the policy is in force")
}

// rejectIngresses makes the API server refuse the Ingresses of a namespace, but accept dry runs of them.
func rejectIngresses(ctx context.Context, namespace string) {
	GinkgoHelper()
	denyIngresses(ctx, namespace, "(has(request.dryRun) && request.dryRun)")
}

var _ = Describe("Nothing is changed if the API server would refuse an object", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		engine = newEngine("one")
	})

	// expectNothing expects that an action fails by a dry run, and that nothing has changed.
	expectNothing := func(ctx SpecContext, message string, action func() (release.Result, error)) {
		GinkgoHelper()

		before, revisions := objects(ctx, namespace), history(ctx, namespace)
		result, err := action()
		expectError[*apply.DryRunError](err)
		Expect(err).To(MatchError(HavePrefix(message)))
		Expect(result.Revision).To(BeZero())
		Expect(objects(ctx, namespace)).To(Equal(before))
		Expect(history(ctx, namespace)).To(Equal(revisions))
	}

	It("of an upgrade", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "first"), serviceAccount("first")))
		denyIngresses(ctx, namespace, "false")

		second := specOf(namespace, "2.0.0", configMap("config", "second"), serviceAccount("second"), rejected)
		expectNothing(ctx, "the API server would refuse Ingress "+namespace+"/refused, so nothing was changed: ",
			func() (release.Result, error) { return applySpec(ctx, engine, second) })
	})

	It("of a rollback", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "first"), rejected))

		second := specOf(namespace, "2.0.0", configMap("config", "second"), serviceAccount("second"))
		mustApply(ctx, engine, second)
		denyIngresses(ctx, namespace, "false")

		expectNothing(ctx, "the API server would refuse Ingress "+namespace+"/refused, so nothing was changed: ",
			func() (release.Result, error) {
				options := release.RollbackOptions{Target: confirmed(namespace, 1)}
				return rollback(ctx, engine, releaseIn(namespace), options, observe(ctx, engine, second))
			})
	})

	It("of an upgrade or a rollback of what may not be read", func(ctx SpecContext) {
		second := specOf(namespace, "2.0.0", configMap("config", "second"), serviceAccount("second"))
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "first"), serviceAccount("first")))
		mustApply(ctx, engine, second)

		limited := newRefusedEngine("configmaps", http.MethodGet)
		message := "the API server would refuse ConfigMap " + namespace + "/config, so nothing was changed: "

		expectNothing(ctx, message, func() (release.Result, error) {
			return applySpec(ctx, limited, specOf(namespace, "3.0.0", configMap("config", "third"), serviceAccount("third")))
		})
		expectNothing(ctx, message, func() (release.Result, error) {
			options := release.RollbackOptions{Target: confirmed(namespace, 1)}
			return rollback(ctx, limited, releaseIn(namespace), options, observe(ctx, engine, second))
		})
	})

	It("because a value still has the wrong type after patches", func(ctx SpecContext) {
		unquoted := "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  pin: {{ .Values.variables.PIN }}\n"
		spec := newSpec(namespace, chartOf("1.0.0", configMap("config", ""), unquoted),
			map[string]any{"variables": map[string]any{"PIN": "8443"}})

		expectNothing(ctx, "the API server would refuse Secret "+namespace+"/s, so nothing was changed: "+
			".stringData.pin: expected string", func() (release.Result, error) { return applySpec(ctx, engine, spec) })

		spec.PostRenderer = replacer{"8443", `"8443"`}
		mustApply(ctx, engine, spec)
	})

	It("that is adopted with others", func(ctx SpecContext) {
		run(ctx, "kubectl", "create", "configmap", "config", "-n", namespace, "--from-literal=key=before")

		expectNothing(ctx, "the API server would refuse Deployment "+namespace+"/manager, so nothing was changed: ",
			func() (release.Result, error) {
				return applySpec(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "first"), deployment("manager", "-1")))
			})
	})

	It("but what a webhook that does not answer would say is not waited for", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "first"), `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: `+namespace+`-webhook}
webhooks:
- name: silent.release.test
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: "https://127.0.0.1:1/"}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+namespace+`}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps]}]
`))

		annotate := []string{"annotate", "configmap", "config", "-n", namespace, "a=b", "--overwrite", "--dry-run=server"}

		Eventually(func() error { return command(ctx, "kubectl", annotate...).Run() }).ShouldNot(
			Succeed(), "the API server calls the webhook")

		result, err := applySpec(ctx, engine, specOf(namespace, "1.1.0", configMap("config", "second")))
		expectError[*apply.UnavailableError](err)
		Expect(result.Revision).To(Equal(2), "the upgrade was tried, and is retried")
	})

	It("of a first installation", func(ctx SpecContext) {
		denyIngresses(ctx, namespace, "false")

		first := specOf(namespace, "1.0.0", configMap("config", "first"), rejected)
		expectNothing(ctx, "the API server would refuse Ingress "+namespace+"/refused, so nothing was changed: ",
			func() (release.Result, error) { return applySpec(ctx, engine, first) })
	})

	It("that an account may not patch", func(ctx SpecContext) {
		grantConfigMaps(ctx, namespace, "get", "create", "delete")

		limited := newEngine("limited", func(c *rest.Config) { c.Impersonate.UserName = namespace })

		expectNothing(ctx, "the API server would refuse ConfigMap "+namespace+"/config, so nothing was changed: ",
			func() (release.Result, error) {
				result, err := applySpec(ctx, limited, specOf(namespace, "1.0.0", configMap("config", "")))
				Expect(err).To(MatchError(And(
					ContainSubstring(`cannot patch resource "configmaps"`),
					HaveSuffix("; grant that permission, for example with the roles that `capstan permissions` prints"))))

				return result, err
			})
	})

	It("and up to ten of them are named", func(ctx SpecContext) {
		var templates []string

		for i := range 12 {
			name := fmt.Sprintf("name: manager-%02d", i)
			templates = append(templates, strings.Replace(deployment("manager", "-1"), "name: manager", name, 1))
		}

		expectNothing(ctx, "the API server would refuse Deployment "+namespace+"/manager-00, so nothing was changed: "+
			"spec.replicas: must be greater than or equal to 0; Deployment "+namespace+"/manager-01: spec.replicas: ",
			func() (release.Result, error) {
				result, err := applySpec(ctx, engine, specOf(namespace, "1.0.0", templates...))
				Expect(err).To(MatchError(And(ContainSubstring("/manager-09: "), Not(ContainSubstring("/manager-10: ")),
					ContainSubstring(" (and 2 more); correct the variables"))))

				return result, err
			})
	})

	It("that has two items with the same key in a list", func(ctx SpecContext) {
		twice := strings.Replace(deployment("manager", "1"), "image:", "env: [{name: A, value: b}, {name: A, value: c}]\n"+
			"        image:", 1)

		expectNothing(ctx, "the API server would refuse Deployment "+namespace+"/manager, so nothing was changed: "+
			`.spec.template.spec.containers[name="manager"].env: duplicate entries for key [name="A"]; correct the variables`,
			func() (release.Result, error) { return applySpec(ctx, engine, specOf(namespace, "1.0.0", twice)) })
	})
})
