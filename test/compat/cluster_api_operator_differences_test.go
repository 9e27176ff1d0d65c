package compat

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/compat/table"
)

const differencesSection = "Other differences"

// describeDifferences describes documented differences that no resource of cluster-api-operator shows.
func describeDifferences(s **site) {
	// install installs a provider, and returns the Deployment whose name ends with a suffix.
	install := func(ctx context.Context, name string, spec v1alpha2.ProviderSpec, oldnew ...string) *appsv1.Deployment {
		GinkgoHelper()

		release := small(infrastructure, name, "v1.0.0")
		release.Bundle.Components = []byte(strings.NewReplacer(oldnew...).Replace(string(release.Bundle.Components)))
		Expect(release.Prepare(ctx, *s)).To(Succeed())

		p := release.Resource()
		spec.Version, spec.FetchConfig = p.GetSpec().Version, p.GetSpec().FetchConfig
		*p.GetSpec() = spec
		(*s).create(ctx, p)
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.0"))

		list := &appsv1.DeploymentList{}
		Expect((*s).List(ctx, list, client.InNamespace(name))).To(Succeed())
		Expect(list.Items).To(HaveLen(1))

		return &list.Items[0]
	}

	It("set only flags that the manager has",
		table.Row(differencesSection,
			"fields for flags that not every manager has",
			"manager.maxConcurrentReconciles, .metrics, .health, .webhook.host, .leaderElection.resourceName"),
		func(ctx SpecContext) {
			concurrency := int32(4)
			spec := v1alpha2.ProviderSpec{Manager: &v1alpha2.ManagerSpec{MaxConcurrentReconciles: &concurrency}}
			Expect(install(ctx, "flagless", spec).Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--level=info"}))
			Eventually((*s).events(ctx, "flagless")).Should(
				ContainElement(ContainSubstring("manager.maxConcurrentReconciles is ignored: the manager is not published with")))
		})

	It("replace flags",
		table.Row(differencesSection, "manager.additionalArgs with a flag of the components", "manager.additionalArgs"),
		func(ctx SpecContext) {
			spec := v1alpha2.ProviderSpec{Manager: &v1alpha2.ManagerSpec{AdditionalArgs: map[string]string{"--level": "debug"}}}
			Expect(install(ctx, "replaced", spec).Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--level=debug"}))
		})

	It("find the manager by its container",
		table.Row(differencesSection, "a manager whose Deployment has another name", "deployment"), func(ctx SpecContext) {
			replicas := int32(2)
			spec := v1alpha2.ProviderSpec{Deployment: &v1alpha2.DeploymentSpec{Replicas: &replicas}}
			deployment := install(ctx, "oddly", spec, "oddly-controller-manager", "oddly-named")
			Expect(deployment.Name).To(Equal("oddly-named"))
			Expect(deployment.Spec.Replicas).To(HaveValue(Equal(replicas)))
		})

	It("need no webhooks",
		table.Row(differencesSection,
			"webhooks for the resources themselves", "requires cert-manager and a webhook for itself"),
		func(ctx SpecContext) {
			definition := (*s).definition(ctx)
			Expect(definition.Spec.Conversion.Strategy).To(Equal(apiextensionsv1.NoneConverter))

			validating := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
			mutating := &admissionregistrationv1.MutatingWebhookConfigurationList{}

			Expect((*s).List(ctx, validating)).To(Succeed())
			Expect((*s).List(ctx, mutating)).To(Succeed())
			Expect(validating.Items).To(BeEmpty())
			Expect(mutating.Items).To(BeEmpty())
		})

	It("have more fields",
		table.Row(differencesSection, "fields that cluster-api-operator does not have", "all other fields"),
		func(ctx SpecContext) {
			definition := (*s).definition(ctx)

			known := map[string]bool{}
			for _, f := range readFields().fields {
				known[strings.FieldsFunc(f.path, func(r rune) bool { return r == '.' || r == '[' })[0]] = true
			}

			var added []string

			for name := range definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties {
				if !known[name] {
					added = append(added, name)
				}
			}

			page, err := os.ReadFile(filepath.Join(root, "docs/cluster-api-operator.md"))
			Expect(err).NotTo(HaveOccurred())

			_, line, _ := bytes.Cut(page, []byte("| all other fields |"))
			line, _, _ = bytes.Cut(line, []byte("\n"))

			for _, name := range added {
				Expect(string(line)).To(ContainSubstring("`"+name+"`"), "docs/cluster-api-operator.md")
			}
		})

	It("are no values of the chart",
		table.Row(differencesSection, "values of the chart of cluster-api-operator", "values of the operator's chart"),
		func(ctx SpecContext) {
			out, err := (*s).bed.Command(ctx, "helm", "template", "capstan", filepath.Join(root, "charts/capstan"),
				"--set", "infrastructure.docker.version=v1.0.0").CombinedOutput()
			Expect(err).To(HaveOccurred())
			Expect(string(out)).To(ContainSubstring("infrastructure"))
		})

	It("need TLS",
		table.Row(differencesSection, "sources over plain HTTP, without --allow-http-sources", "fetchConfig.url, .oci"),
		func(ctx SpecContext) {
			(*s).start("--allow-http-sources=false")
			DeferCleanup(func() { (*s).start() })

			p := (*s).minimal(infrastructure, "plain", "plain")
			p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{OCI: "http://" + (*s).registry + "/releases/plain"}
			(*s).create(ctx, p)
			Eventually((*s).current(ctx, p)).Should(
				haveMessage(v1alpha2.ReadyCondition, "--allow-http-sources"))
			(*s).remove(ctx, p)
		})
}

// definition returns the CustomResourceDefinition of one of the kinds.
func (s *site) definition(ctx context.Context) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()

	definition := &apiextensionsv1.CustomResourceDefinition{}
	Expect(s.Get(ctx, client.ObjectKey{Name: "coreproviders." + v1alpha2.GroupVersion.Group}, definition)).To(Succeed())

	return definition
}
