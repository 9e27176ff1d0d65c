package compat

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// describeMinimal describes resources with little more than a name and a version.
func describeMinimal(s **site) {
	DescribeTable("need only a name and a version",
		func(ctx SpecContext, kind v1alpha2.ProviderType, name, object string) {
			p := (*s).minimal(kind, "minimal-"+object, name)
			(*s).create(ctx, p)
			Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.0"))
			(*s).remove(ctx, p)
		},
		Entry("for bootstrap", bootstrap, "kubeadm", "bootstrap"),
		Entry("for control planes", controlPlane, "kubeadm", "controlplane"),
		Entry("for infrastructure", infrastructure, "docker", "docker"),
		Entry("for add-ons", v1alpha2.AddonProviderType, "helm", "helm"),
	)

	It("install from a URL", func(ctx SpecContext) {
		p := (*s).minimal(v1alpha2.IPAMProviderType, "minimal-ipam", "by-url")
		p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{
			URL: (*s).publish(v1alpha2.IPAMProviderType, "by-url", "byurl", "v1.0.0"),
		}
		(*s).create(ctx, p)
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.0"))
		(*s).remove(ctx, p)
	})

	It("install from a registry", func(ctx SpecContext) {
		(*s).fromRegistry(ctx, "custom", "pushed")
	})

	It("override the source of a listed provider", func(ctx SpecContext) {
		(*s).fromRegistry(ctx, "docker", "docker")
	})
}

// fromRegistry installs an infrastructure provider from the registry, upgrades and removes it.
func (s *site) fromRegistry(ctx context.Context, name, object string) {
	GinkgoHelper()

	for _, version := range []string{"v1.0.0", "v1.1.0"} {
		s.push(ctx, "releases/"+name, harness.Small(infrastructure, client.ObjectKey{Name: name}, object, version))
	}

	p := s.minimal(infrastructure, "registry-"+name, name)
	p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{OCI: "http://" + s.registry + "/releases/" + name}
	s.create(ctx, p)
	Eventually(s.current(ctx, p)).Should(runVersion("v1.0.0"))

	change(ctx, s, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
	Eventually(s.current(ctx, p)).Should(runVersion("v1.1.0"))
	s.remove(ctx, p)
}

// describeAirGapped describes providers from ConfigMaps.
func describeAirGapped(s **site) {
	DescribeTable("install from ConfigMaps", func(ctx SpecContext, kind v1alpha2.ProviderType, name string) {
		for _, version := range []string{"v1.0.0", "v1.1.0"} {
			Expect(small(kind, name, version).Prepare(ctx, *s)).To(Succeed())
		}

		p := small(kind, name, "v1.0.0").Resource()
		(*s).create(ctx, p)
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.0"))

		By("upgrading")
		change(ctx, *s, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.1.0"))
		Expect((*s).manager(ctx, name, name)(Default).Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":v1.1.0"))

		(*s).remove(ctx, p)
	},
		Entry("for bootstrap", bootstrap, "my-bootstrap"),
		Entry("for control planes", controlPlane, "my-control-plane"),
	)

	It("offer several versions", func(ctx SpecContext) {
		for _, version := range []string{"v1.0.0", "v1.1.0"} {
			Expect(small(infrastructure, "either", version).Prepare(ctx, *s)).To(Succeed())
		}

		p := small(infrastructure, "either", "v1.0.0").Resource()
		(*s).create(ctx, p)
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.0"))
		change(ctx, *s, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.1.0"))
	})
}

// describeLargeReleases describes releases that do not fit into a ConfigMap.
func describeLargeReleases(s **site) {
	load := func(ctx context.Context) *harness.Release {
		GinkgoHelper()

		folder := GinkgoT().TempDir()
		Expect(testproviders.WriteLarge(folder)).To(Succeed())
		release, err := harness.Load(ctx, folder, harness.Wanted{Label: "infrastructure-large", Version: "v1.0.0"})
		Expect(err).NotTo(HaveOccurred())

		return release
	}

	It("install a large release from a registry", func(ctx SpecContext) {
		(*s).push(ctx, "large", load(ctx))

		p := (*s).minimal(infrastructure, "large-registry", "large")
		p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{OCI: "http://" + (*s).registry + "/large:v1.0.0"}
		(*s).create(ctx, p)
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.0"))

		Expect((*s).componentsOf(ctx, p)).To(BeEmpty())

		cache := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: p.GetNamespace(), Name: "infrastructure-large-v1.0.0-cache",
		}}
		Expect(apierrors.IsNotFound((*s).Get(ctx, client.ObjectKeyFromObject(cache), cache))).To(BeTrue())
		(*s).remove(ctx, p)
	})

	It("install a large release from a compressed ConfigMap", func(ctx SpecContext) {
		release := load(ctx)
		source, err := release.ConfigMap()
		Expect(err).NotTo(HaveOccurred())

		source.Namespace, source.Labels = "large-configmap", map[string]string{"provider-components": "large"}
		source.Name = "v1.0.0"
		p := (*s).minimal(infrastructure, "large-configmap", "renamed")
		p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{Selector: &metav1.LabelSelector{MatchLabels: source.Labels}}
		(*s).create(ctx, source, p)
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.0"))
		(*s).remove(ctx, p)
	})
}

// componentsOf returns the ConfigMaps with components in the namespace of a resource.
func (s *site) componentsOf(ctx context.Context, p v1alpha2.Provider) []corev1.ConfigMap {
	GinkgoHelper()

	list := &corev1.ConfigMapList{}
	Expect(s.List(ctx, list, client.InNamespace(p.GetNamespace()), client.HasLabels{v1alpha2.ConfigMapVersionLabel})).
		To(Succeed())

	return list.Items
}

// describeCore describes core, which is removed after all other providers.
func describeCore(s **site) {
	p := v1alpha2.Provider(&v1alpha2.CoreProvider{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: v1alpha2.CoreProviderName},
	})

	It("keep the version without one", func(ctx SpecContext) {
		change(ctx, *s, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "" })
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.0"))
	})

	It("upgrade core", func(ctx SpecContext) {
		change(ctx, *s, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.1.0"))
	})

	It("remove core last", func(ctx SpecContext) {
		for _, kind := range v1alpha2.ProviderTypes() {
			(*s).kubectl(ctx, "delete", strings.ToLower(string(kind)), "--all", "--all-namespaces", "--wait=false")
		}

		Eventually(func() bool {
			return apierrors.IsNotFound((*s).Get(ctx, client.ObjectKeyFromObject(p), p))
		}).Should(BeTrue())

		for _, kind := range v1alpha2.ProviderTypes() {
			list := kind.NewList()
			Expect((*s).List(ctx, list)).To(Succeed())
			Expect(list.GetItems()).To(BeEmpty())
		}

		deployments := &appsv1.DeploymentList{}
		Expect((*s).List(ctx, deployments, client.HasLabels{v1alpha2.ClusterctlProviderLabel})).To(Succeed())
		Expect(deployments.Items).To(BeEmpty())
	})
}
