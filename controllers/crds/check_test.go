package crds

import (
	"context"
	"iter"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/crds/trial"
)

// countedObjects counts how often all objects of a resource are read.
type countedObjects struct {
	trial.Objects
	reads int
}

func (c *countedObjects) All(
	ctx context.Context, resource schema.GroupVersionResource,
) iter.Seq2[*unstructured.Unstructured, error] {
	c.reads++
	return c.Objects.All(ctx, resource)
}

var _ = Describe("An unsafe change", func() {
	It("is not tried on all objects at each look", func(ctx SpecContext) {
		k := newKind("ef")
		k.define(ctx, "v1alpha1")
		k.create(ctx, "v1alpha1", 0, 3)

		counted := &countedObjects{Objects: applier.Objects}
		clients := applier.Clients
		clients.Objects = counted
		looking := applier.WithClients(clients)

		narrowed := definitionOf(k.name, "v1alpha1")
		narrowed.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = nil
		look := func(options CheckOptions) *trial.Report {
			GinkgoHelper()

			plan, err := looking.Plan(ctx, wants(fileOf(narrowed)))
			Expect(err).NotTo(HaveOccurred())
			report, err := looking.CheckChanges(ctx, plan, options)
			Expect(err).NotTo(HaveOccurred())

			return report
		}

		first := look(CheckOptions{})
		Expect(first.Refused()).To(BeTrue(), first.Message())
		Expect(counted.reads).To(Equal(1))
		Expect(look(CheckOptions{})).To(Equal(first))
		Expect(counted.reads).To(Equal(1), "the verdict is remembered")

		Expect(look(CheckOptions{Again: true}).Refused()).To(BeTrue())
		Expect(counted.reads).To(Equal(2), "a user asked for it")

		Expect(look(CheckOptions{Allow: []string{k.crd()}}).Refused()).To(BeFalse())
		Expect(counted.reads).To(Equal(3), "the annotation changed")
	})
})

func TestVerdictLifetime(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond: minVerdictLifetime,
		3 * time.Second:  time.Minute,
		time.Hour:        maxVerdictLifetime,
	} {
		NewWithT(t).Expect(verdictLifetime(took)).To(Equal(want), "%s", took)
	}
}
