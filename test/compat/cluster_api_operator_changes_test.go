package compat

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// describeChanges describes changes of the spec, and of the Secret and the ConfigMap of a source. The operator has the
// flags for watching them.
func describeChanges(s **site) {
	var (
		p        v1alpha2.Provider
		source   *corev1.ConfigMap
		revision int
	)

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "changes", Name: "variables"}}

	level := func(ctx context.Context) func(Gomega) []string {
		return func(g Gomega) []string {
			return (*s).manager(ctx, "changes", "changes")(g).Spec.Template.Spec.Containers[0].Args
		}
	}

	It("use the Secret", func(ctx SpecContext) {
		release := small(infrastructure, "changes", "v1.0.0")
		Expect(release.Prepare(ctx, *s)).To(Succeed())

		var err error

		source, err = release.ConfigMap()
		Expect(err).NotTo(HaveOccurred())

		p = release.Resource()
		p.GetSpec().ConfigSecret = &v1alpha2.SecretReference{Name: secret.Name}
		secret.StringData = map[string]string{"LEVEL": "debug"}
		(*s).create(ctx, secret, p)
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.0"))
		Expect(level(ctx)(Default)).To(ConsistOf("--level=debug"))

		revision = p.GetStatus().Release.Revision
	})

	It("follow the Secret", func(ctx SpecContext) {
		change(ctx, *s, secret, func(secret *corev1.Secret) { secret.StringData = map[string]string{"LEVEL": "trace"} })
		Eventually(level(ctx)).Should(ConsistOf("--level=trace"))
		Eventually((*s).current(ctx, p)).Should(And(
			runVersion("v1.0.0"), WithTransform(revisionOf, Equal(revision+1))))

		revision++
	})

	It("ignore an equal Secret", func(ctx SpecContext) {
		change(ctx, *s, secret, func(secret *corev1.Secret) { secret.Labels = map[string]string{"written": "again"} })
		Consistently((*s).current(ctx, p)).WithTimeout(quietPeriod).Should(And(
			runVersion("v1.0.0"), WithTransform(revisionOf, Equal(revision))))
	})

	It("follow the ConfigMap", func(ctx SpecContext) {
		changed := small(infrastructure, "changes", "v1.0.0")
		changed.Bundle.Components = append(changed.Bundle.Components,
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: new, namespace: changes-system}\n"...)
		content, err := changed.ConfigMap()
		Expect(err).NotTo(HaveOccurred())

		change(ctx, *s, source, func(source *corev1.ConfigMap) { source.BinaryData = content.BinaryData })
		Eventually(func() error {
			return (*s).Get(ctx, client.ObjectKey{Namespace: "changes", Name: "new"}, &corev1.ConfigMap{})
		}).Should(Succeed())
		Eventually((*s).current(ctx, p)).Should(And(
			runVersion("v1.0.0"), WithTransform(revisionOf, Equal(revision+1))))

		revision++
	})

	It("ignore other ConfigMaps", func(ctx SpecContext) {
		other := source.DeepCopy()
		other.ResourceVersion, other.Name, other.Labels = "", "other", map[string]string{"provider-components": "other"}
		other.BinaryData = map[string][]byte{}
		(*s).create(ctx, other)
		Consistently((*s).current(ctx, p)).WithTimeout(quietPeriod).Should(And(
			runVersion("v1.0.0"), WithTransform(revisionOf, Equal(revision))))
	})

	It("follow the spec", func(ctx SpecContext) {
		replicas := int32(2)

		change(ctx, *s, p, func(p v1alpha2.Provider) {
			p.GetSpec().Deployment = &v1alpha2.DeploymentSpec{Replicas: &replicas}
		})
		Eventually((*s).current(ctx, p)).Should(And(
			runVersion("v1.0.0"), WithTransform(revisionOf, Equal(revision+1))))
		Expect((*s).manager(ctx, "changes", "changes")(Default).Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))

		revision++
	})

	It("forget removed fields", func(ctx SpecContext) {
		change(ctx, *s, p, func(p v1alpha2.Provider) { p.GetSpec().Deployment = nil })
		Eventually((*s).current(ctx, p)).Should(And(
			runVersion("v1.0.0"), WithTransform(revisionOf, Equal(revision+1))))
		Expect((*s).manager(ctx, "changes", "changes")(Default).Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))

		revision++
	})

	It("keep what runs", func(ctx SpecContext) {
		change(ctx, *s, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v10.0.0" })
		Eventually((*s).current(ctx, p)).Should(And(
			fail(v1alpha2.ReadyCondition, v1alpha2.VersionNotFoundReason, "v10.0.0"),
			WithTransform(revisionOf, Equal(revision))))
		Expect(p.GetStatus().InstalledVersion).To(HaveValue(Equal("v1.0.0")))

		change(ctx, *s, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.0.0" })
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.0"))
	})

	It("have no hash", func() {
		Expect(p.GetAnnotations()).NotTo(HaveKey("operator.cluster.x-k8s.io/applied-spec-hash"))
		Expect(p.GetStatus().ObservedGeneration).To(Equal(p.GetGeneration()), "which says the same")
	})
}

// revisionOf returns the revision of a provider's release.
func revisionOf(p v1alpha2.Provider) int { return p.GetStatus().Release.Revision }
