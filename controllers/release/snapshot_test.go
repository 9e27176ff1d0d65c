package release_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers/object"
)

var _ = Describe("The result of an action", func() {
	It("has snapshots of the objects, so that they need not be read again", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		spec := specOf(namespace, "1.0.0", configMap("config", "value"), deployment("manager", "2"))
		applied := mustApply(ctx, engine, spec).Applied()
		Expect(applied).To(sameAs(compare(ctx, engine, namespace).InSync))

		spec = specOf(namespace, "1.1.0", configMap("config", "other"), deployment("manager", "2"))
		again := mustApply(ctx, engine, spec).Applied()
		Expect(again).To(sameAs(compare(ctx, engine, namespace).InSync), "changed or not")
	})

	It("has snapshots that ignore the status and the Deployment's revision", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		before := mustApply(ctx, engine, specOf(namespace, "1.0.0", deployment("manager", "2"))).Applied()[0]

		Eventually(func(g Gomega) {
			d, err := client.AppsV1().Deployments(namespace).Get(ctx, "manager", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d.Status.ObservedGeneration).To(BeEquivalentTo(1))
			g.Expect(d.Annotations).To(HaveKey("deployment.kubernetes.io/revision"))
		}).Should(Succeed())

		after := compare(ctx, engine, namespace).InSync[0]
		Expect(after.ResourceVersion).NotTo(Equal(before.ResourceVersion))
		Expect(after.Same(before)).To(BeTrue())
		Expect(before.OlderThan(after)).To(BeTrue())
		run(ctx, "kubectl", "annotate", "deployment", "manager", "-n", namespace, "note=new")
		Expect(compare(ctx, engine, namespace).InSync[0].Same(before)).To(BeFalse())
	})
})

// sameAs matches snapshots of the same objects with the same content that are not older.
func sameAs(snapshots []object.Snapshot) OmegaMatcher {
	same := make([]any, 0, len(snapshots))
	for _, s := range snapshots {
		same = append(same, And(HaveField("Object", s.Object), Satisfy(s.Same), Not(Satisfy(s.OlderThan))))
	}

	return ConsistOf(same...)
}
