package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

var _ = Describe("Real providers that are upgraded in one commit", func() {
	It("are upgraded after core, without an outage and without losing objects", func(ctx SpecContext) {
		repository := testproviders.Folder(GinkgoT())

		w := newWorld(ctx)
		w.start()

		// Core is the last in the file.
		all := []struct{ label, before, after string }{
			{"bootstrap-kubeadm", "v1.12.11", "v1.14.0"},
			{"control-plane-kubeadm", "v1.12.11", "v1.14.0"},
			{"infrastructure-docker", "v1.12.11", "v1.14.0"},
			{"infrastructure-aws", "v2.10.3", "v2.11.1"},
			{"cluster-api", "v1.12.11", "v1.14.0"},
		}

		become := func(version func(i int) string) (took time.Duration) {
			GinkgoHelper()

			var resources []v1alpha2.Provider

			for i, p := range all {
				wanted := harness.Wanted{Label: p.label, Version: version(i)}
				if p.label == "infrastructure-aws" {
					wanted.Variables = harness.AWSVariables
				}

				release, err := harness.Load(ctx, repository, wanted)
				Expect(err).NotTo(HaveOccurred())
				Expect(release.Prepare(ctx, w.client)).To(Succeed())

				resources = append(resources, release.Resource())
			}

			took = w.applyTogether(ctx, resources)

			for i, p := range resources {
				Eventually(w.read(ctx, p)).Should(beReady(version(i)), all[i].label)
			}

			return took
		}

		become(func(i int) string { return all[i].before })

		objects := w.createUsersObjects(ctx)
		observed := w.observeOrder(ctx, "v1.14.0", "v2.11.1")
		begin := time.Now()

		took := become(func(i int) string { return all[i].after })

		order, outages := observed()
		Expect(outages).To(BeEmpty())
		Expect(order).To(HaveLen(len(all)))
		w.expectAlive(ctx, objects)

		if !isOneChange(took) {
			return
		}

		Expect(order[0]).To(Equal("cluster-api"), "%v", order)

		tried := w.requests(func(r bed.Request) bool {
			return r.Received.After(begin) && r.DryRun && r.Resource == "deployments" && r.Code == http.StatusOK
		})
		Expect(tried).To(HaveLen(len(all)), "what waits for core is not tried before")

		events := w.eventsOf(ctx)
		Expect(events).To(ContainElement(ContainSubstring("waiting until CoreProvider cluster-api-system/cluster-api " +
			"has changed from v1.12.11 to v1.14.0, which comes first")))

		position := func(label, version string) int {
			healthy := label + ": " + version + " is healthy"
			return slices.IndexFunc(events, func(e string) bool { return strings.Contains(e, healthy) })
		}
		for _, p := range all[:len(all)-1] {
			Expect(position(p.label, p.after)).To(BeNumerically(">", position("cluster-api", "v1.14.0")), "%s", p.label)
		}
	})
})

// eventsOf returns the notes of all events about providers, oldest first.
func (w *world) eventsOf(ctx context.Context) []string {
	GinkgoHelper()

	list := &eventsv1.EventList{}
	Expect(w.client.List(ctx, list)).To(Succeed())
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })

	var notes []string

	for _, e := range list.Items {
		if e.Regarding.APIVersion == v1alpha2.GroupVersion.String() {
			notes = append(notes, v1alpha2.ProviderType(e.Regarding.Kind).Label(e.Regarding.Name)+": "+e.Note)
		}
	}

	return notes
}

// expectAlive expects that objects exist as they were created.
func (w *world) expectAlive(ctx context.Context, objects []*unstructured.Unstructured) {
	GinkgoHelper()

	for _, o := range objects {
		now := o.DeepCopy()
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(o), now)).To(Succeed(), o.GetKind())
		Expect(now.GetUID()).To(Equal(o.GetUID()), o.GetKind())
		Expect(now.Object["spec"]).To(Equal(o.Object["spec"]), o.GetKind())
	}
}
