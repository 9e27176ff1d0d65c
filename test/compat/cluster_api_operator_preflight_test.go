package compat

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

const (
	core           = v1alpha2.CoreProviderType
	bootstrap      = v1alpha2.BootstrapProviderType
	controlPlane   = v1alpha2.ControlPlaneProviderType
	infrastructure = v1alpha2.InfrastructureProviderType
)

// small returns a release of a small provider in a namespace of its name, whose objects have that name, too.
func small(kind v1alpha2.ProviderType, name, version string) *harness.Release {
	return harness.Small(kind, client.ObjectKey{Namespace: name, Name: name}, name, version)
}

// describeBeforeCore describes resources while there is no core.
func describeBeforeCore(s **site) {
	var waiting v1alpha2.Provider

	It("wait for core", func(ctx SpecContext) {
		waiting = (*s).minimal(controlPlane, "waits", "kubeadm")
		(*s).create(ctx, waiting)
		Eventually((*s).current(ctx, waiting)).Should(
			fail(v1alpha2.PreflightCheckCondition, v1alpha2.WaitingForCoreProviderReadyReason))
		Expect(waiting.GetStatus().InstalledVersion).To(BeNil())
	})

	It("require the name of core", func(ctx SpecContext) {
		p := (*s).minimal(core, "capi-system", "my-core")
		(*s).create(ctx, p)
		Eventually((*s).current(ctx, p)).Should(
			fail(v1alpha2.PreflightCheckCondition, v1alpha2.IncorrectCoreProviderNameReason, "cluster-api"))
		(*s).remove(ctx, p)
	})

	It("install core without a source", func(ctx SpecContext) {
		p := (*s).minimal(core, "capi-system", "cluster-api")
		(*s).create(ctx, p)
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.0"))
	})

	It("continue with core", func(ctx SpecContext) {
		Eventually((*s).current(ctx, waiting)).Should(runVersion("v1.0.0"))
		(*s).remove(ctx, waiting)
	})
}

// describePreflight describes what is refused before an installation.
func describePreflight(s **site) {
	It("have one core", func(ctx SpecContext) {
		second := (*s).minimal(core, "second-system", "cluster-api")
		(*s).create(ctx, second)
		Eventually((*s).current(ctx, second)).Should(
			fail(v1alpha2.PreflightCheckCondition, v1alpha2.MoreThanOneProviderInstanceExistsReason, "capi-system"))

		first := (*s).minimal(core, "capi-system", "cluster-api")
		Expect((*s).current(ctx, first)(Default)).To(runVersion("v1.0.0"), "the one that was installed first stays")
		(*s).remove(ctx, second)
	})

	It("have each provider once", func(ctx SpecContext) {
		release := small(infrastructure, "twice", "v1.0.0")
		Expect(release.Prepare(ctx, *s)).To(Succeed())

		first, second := release.Resource(), release.Resource()
		second.SetNamespace("twice-again")
		(*s).create(ctx, first)
		Eventually((*s).current(ctx, first)).Should(runVersion("v1.0.0"))
		(*s).create(ctx, second)
		Eventually((*s).current(ctx, second)).Should(
			fail(v1alpha2.PreflightCheckCondition, v1alpha2.MoreThanOneProviderInstanceExistsReason, "twice"))
		Expect((*s).current(ctx, first)(Default)).To(runVersion("v1.0.0"))
	})

	It("can be of one kind", func(ctx SpecContext) {
		var all []v1alpha2.Provider

		for _, name := range []string{"first", "second", "third"} {
			key := client.ObjectKey{Namespace: "together", Name: name}
			if name == "third" {
				key.Namespace = "apart"
			}

			release := harness.Small(infrastructure, key, name, "v1.0.0")
			p, err := release.Install(ctx, *s)
			Expect(err).NotTo(HaveOccurred())

			all = append(all, p)
		}

		for _, p := range all {
			Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.0"))
		}
	})

	It("have a version", func(ctx SpecContext) {
		p := (*s).minimal(infrastructure, "default", "invalid")
		p.GetSpec().Version = "one"
		Expect((*s).Create(ctx, p)).To(MatchError(ContainSubstring("must be a version such as v1.13.5")))
	})

	It("have a source", func(ctx SpecContext) {
		p := (*s).minimal(infrastructure, "default", "invalid")
		p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{}
		Expect((*s).Create(ctx, p)).To(MatchError(ContainSubstring("set exactly one of selector, oci, url")))
	})

	It("have one source", func(ctx SpecContext) {
		p := (*s).minimal(infrastructure, "default", "invalid")
		p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{
			URL: "https://example.com/owner/name", Selector: &metav1.LabelSelector{},
		}
		Expect((*s).Create(ctx, p)).To(MatchError(ContainSubstring("set exactly one of selector, oci, url")))
	})

	It("have a known source", func(ctx SpecContext) {
		p := (*s).minimal(infrastructure, "unheard", "unheard-of")
		(*s).create(ctx, p)
		Eventually((*s).current(ctx, p)).Should(
			And(fail(v1alpha2.ProviderInstalledCondition, v1alpha2.UnknownProviderReason),
				haveMessage(v1alpha2.ReadyCondition, "set spec.fetchConfig")))
		(*s).remove(ctx, p)
	})

	It("need their source", func(ctx SpecContext) {
		p := (*s).minimal(infrastructure, "no-releases", "no-releases")
		p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{URL: (*s).releases.URL() + "/example/none/releases"}
		(*s).create(ctx, p)
		Eventually((*s).current(ctx, p)).Should(haveStatus(v1alpha2.ProviderInstalledCondition, metav1.ConditionFalse))
		(*s).remove(ctx, p)
	})

	It("get a version", func(ctx SpecContext) {
		p := (*s).minimal(bootstrap, "newest", "kubeadm")
		p.GetSpec().Version = ""
		(*s).create(ctx, p)
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.1.0"))
		(*s).remove(ctx, p)
	})

	describeVersions(s)
}

// describeVersions describes changes of an installed version.
func describeVersions(s **site) {
	var p v1alpha2.Provider

	to := func(ctx SpecContext, version string) {
		GinkgoHelper()
		change(ctx, *s, p, func(p v1alpha2.Provider) { p.GetSpec().Version = version })
		Eventually((*s).current(ctx, p)).Should(runVersion(version))
	}

	It("can be upgraded", func(ctx SpecContext) {
		for _, version := range []string{"v1.0.0", "v1.0.1", "v1.1.0", "v2.0.0"} {
			release := small(infrastructure, "versions", version)
			release.Bundle.Metadata = append(release.Bundle.Metadata, "- {major: 2, minor: 0, contract: v1beta2}\n"...)
			Expect(release.Prepare(ctx, *s)).To(Succeed())
		}

		p = small(infrastructure, "versions", "v1.0.1").Resource()
		(*s).create(ctx, p)
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.1"))

		uid := (*s).manager(ctx, "versions", "versions")(Default).UID

		to(ctx, "v1.1.0")
		to(ctx, "v2.0.0")
		Expect((*s).manager(ctx, "versions", "versions")(Default).UID).To(Equal(uid), "in place")
	})

	It("can be downgraded", func(ctx SpecContext) {
		to(ctx, "v1.0.1")
		to(ctx, "v1.0.0")
	})

	It("can be downgraded further", func(ctx SpecContext) {
		to(ctx, "v2.0.0")
		to(ctx, "v1.1.0")
		to(ctx, "v1.0.1")
	})

	It("can be written again", func(ctx SpecContext) {
		revision := p.GetStatus().Release.Revision
		change(ctx, *s, p, func(p v1alpha2.Provider) { p.SetLabels(map[string]string{"written": "again"}) })
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.1"))
		Expect(p.GetStatus().Release.Revision).To(Equal(revision))
	})
}
