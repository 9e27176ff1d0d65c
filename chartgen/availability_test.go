package chartgen_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/render"
)

// TestHighAvailabilityOfRealProviders: each Deployment has what it needs, or the reason why it cannot have it.
func TestHighAvailabilityOfRealProviders(t *testing.T) {
	forEachRelease(t, func(t *testing.T, b *bundle.Bundle) {
		g := NewWithT(t)

		components, err := bundle.ParseComponents(b.Components)
		g.Expect(err).NotTo(HaveOccurred())

		built, err := chartgen.Build(b)
		g.Expect(err).NotTo(HaveOccurred())

		required, _, err := chartgen.RequiredVariables(built)
		g.Expect(err).NotTo(HaveOccurred())

		chosen := map[string]any{}

		for _, doc := range components.Documents {
			if doc.Object.GetKind() == "Deployment" {
				chosen[doc.Object.GetName()] = map[string]any{"highAvailability": true}
			}
		}

		variables := map[string]any{}

		for _, name := range required {
			variables[name] = "dmFsdWU="
		}

		manifest, err := render.Manifest(built, targetNamespace,
			map[string]any{"deployments": chosen, "variables": variables})
		g.Expect(err).NotTo(HaveOccurred())

		expectHighAvailability(g, manifest, len(chosen))
	})
}

// expectHighAvailability expects of each Deployment in a manifest that it can be replaced and evicted pod by pod.
func expectHighAvailability(g *WithT, manifest string, count int) {
	objects, err := utilyaml.ToUnstructured([]byte(manifest))
	g.Expect(err).NotTo(HaveOccurred())

	var (
		deployments []appsv1.Deployment
		budgets     []policyv1.PodDisruptionBudget
	)

	for _, o := range objects {
		switch o.GetKind() {
		case "Deployment":
			d := appsv1.Deployment{}
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &d, true)).To(Succeed())
			deployments = append(deployments, d)
		case "PodDisruptionBudget":
			budget := policyv1.PodDisruptionBudget{}
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &budget, true)).To(Succeed())
			budgets = append(budgets, budget)
		}
	}

	g.Expect(deployments).To(HaveLen(count))

	for _, d := range deployments {
		g.Expect(*d.Spec.Replicas).To(BeEquivalentTo(2), d.Name)
		g.Expect(d.Spec.Template.Spec.TopologySpreadConstraints).NotTo(BeEmpty(), d.Name)
		g.Expect(*d.Spec.Template.Spec.TerminationGracePeriodSeconds).To(BeNumerically(">", 15), d.Name)

		for _, c := range d.Spec.Template.Spec.Containers {
			g.Expect(c.Lifecycle.PreStop.Sleep.Seconds).To(BeEquivalentTo(15), d.Name)
		}

		g.Expect(d.Spec.Template.Spec.Containers).To(ContainElement(HaveField("ReadinessProbe", Not(BeNil()))), d.Name)

		// A pod with two budgets cannot be evicted.
		found := 0

		for _, b := range budgets {
			if selects(g, &b, d.Spec.Template) {
				found++
			}
		}

		g.Expect(found).To(Equal(1), d.Name)
	}
}

func selects(g *WithT, budget *policyv1.PodDisruptionBudget, pod corev1.PodTemplateSpec) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	g.Expect(err).NotTo(HaveOccurred())

	return selector.Matches(labels.Set(pod.Labels))
}

// TestHighAvailabilityOfOnePod: a chart says why a Deployment cannot have it.
func TestHighAvailabilityOfOnePod(t *testing.T) {
	g := NewWithT(t)

	built, err := chartgen.Build(provider("odd", strings.ReplaceAll(workloads,
		"      nodeSelector: {os: linux}", "      hostNetwork: true")))
	g.Expect(err).NotTo(HaveOccurred())

	for _, chosen := range []any{nil, map[string]any{}, map[string]any{"highAvailability": false}} {
		_, err = render.Manifest(built, targetNamespace,
			map[string]any{"deployments": map[string]any{"manager": chosen}})
		g.Expect(err).NotTo(HaveOccurred())
	}

	_, err = render.Manifest(built, targetNamespace,
		map[string]any{"deployments": map[string]any{"manager": map[string]any{"highAvailability": true}}})
	g.Expect(err).To(MatchError(ContainSubstring("deployments.manager.highAvailability is not possible for this " +
		"Deployment: its pods use the network of their node; remove the value")))
}
