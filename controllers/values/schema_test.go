package values_test

import (
	"cmp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/values"
)

func TestManagerDeployment(t *testing.T) {
	const both = `several Deployments have a container "manager": a, b; list the others in spec.additionalDeployments`

	const neither = `no Deployment with a container "manager" is left for them; ` +
		`use spec.additionalDeployments for all of a, b`

	for name, c := range map[string]struct {
		components []string
		additional string
		want       string // the Deployment that spec.deployment changes
		refused    string
	}{
		"the only one, with any name": {
			components: []string{deploymentComponents("anything", true, "manager")},
			want:       "anything",
		},
		"the only one, with any container": {
			components: []string{deploymentComponents("anything", true, "controller")},
			want:       "anything",
		},
		"the one with a container manager": {
			components: []string{
				deploymentComponents("cap-controller-manager", true, "other"),
				deploymentComponents("b", true, "proxy", "manager"),
				deploymentComponents("c", true, "x", "z"),
			},
			want: "b",
		},
		"of several, the labeled one": {
			components: []string{
				deploymentComponents("azureserviceoperator-controller-manager", false, "manager"),
				deploymentComponents("capz-controller-manager", true, "manager"),
			},
			want: "capz-controller-manager",
		},
		"of several labeled ones, the one that is not additional": {
			components: []string{
				deploymentComponents("a", true, "manager"),
				deploymentComponents("b", true, "manager"),
			},
			additional: "{a: {}}",
			want:       "b",
		},
		"of several without the label, the one that is not additional": {
			components: []string{
				deploymentComponents("a", false, "manager"),
				deploymentComponents("b", false, "manager"),
				deploymentComponents("c", false, "other"),
			},
			additional: "{b: {}}",
			want:       "a",
		},
		"several that are alike": {
			components: []string{
				deploymentComponents("a", true, "manager"),
				deploymentComponents("b", true, "manager"),
			},
			refused: both,
		},
		"all are additional": {
			components: []string{
				deploymentComponents("a", true, "manager"),
				deploymentComponents("b", true, "manager"),
			},
			additional: "{a: {}, b: {}}",
			refused:    neither,
		},
		"none has a container manager": {
			components: []string{deploymentComponents("a", true, "x"), deploymentComponents("b", true, "z")},
			refused:    neither,
		},
		"no Deployment at all": {
			components: []string{"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n"},
			refused:    "infrastructure-tiny has no Deployment; remove them",
		},
		"the manager's Deployment is additional too": {
			components: []string{
				deploymentComponents("capz", true, "manager"),
				deploymentComponents("aso", false, "manager"),
			},
			additional: "{capz: {deployment: {replicas: 2}}}",
			refused:    "spec.additionalDeployments[capz]: this is the Deployment of the provider's manager",
		},
		"the only Deployment is additional too": {
			components: []string{deploymentComponents("lone", true, "manager")},
			additional: "{lone: {}}",
			refused:    "spec.additionalDeployments[lone]: this is the Deployment of the provider's manager",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			built := buildChart(t, strings.Join(c.components, ""))
			spec := "{deployment: {replicas: 10}, manager: {debug: false}, additionalDeployments: " +
				cmp.Or(c.additional, "{}") + "}"

			got, _, err := customized(t, built, values.Input{Spec: specOf(t, spec)})

			if c.refused != "" {
				g.Expect(err).To(HaveField("Reason", v1alpha2.ComponentsCustomizationErrorReason))
				g.Expect(err).To(MatchError(ContainSubstring(c.refused)))

				return
			}

			g.Expect(err).NotTo(HaveOccurred())

			for name, d := range got {
				g.Expect(*d.Spec.Replicas == 10).To(Equal(name == c.want), name)
			}
		})
	}
}
