package e2e

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// The operator before is the one of BEFORE, with the CRDs in the folder BEFORE_CRDS, or this one with another version.
var _ = Describe("An operator of another build", func() {
	// five are the providers to install, core first.
	five := []string{
		"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-docker", "infrastructure-aws",
	}

	DescribeTable("is replaced by this one, which takes its releases over as they are",
		func(ctx SpecContext, folder func(testproviders.TB) string, version, aws string) {
			repository := folder(GinkgoT())
			versionOf := func(label string) string {
				if label == "infrastructure-aws" {
					return aws
				}

				return version
			}

			own := filepath.Join(root, "charts/capstan/crds")

			w := emptyWorld(bed.Options{})
			w.applyCRDs(ctx, cmp.Or(os.Getenv(harness.BeforeCRDsVariable), own))
			w.startProgram(must(harness.Before(ctx, root, GinkgoT().TempDir())))

			var providers []v1alpha2.Provider

			for _, label := range five {
				wanted := harness.Wanted{Label: label, Version: versionOf(label)}
				if label == "infrastructure-aws" {
					wanted.Variables = harness.AWSVariables
				}

				providers = append(providers, w.install(ctx, repository, wanted))
			}

			isReady := func() {
				GinkgoHelper()

				for _, p := range providers {
					Eventually(w.read(ctx, p)).Should(beReady(versionOf(v1alpha2.Label(p))))
				}
			}
			isReady()
			settled(func() int { return len(w.operatorWrites(anything)) })

			identities, revisions := w.identities(ctx), must(harness.Revisions(ctx, w.client))

			By("replacing it")
			Expect(w.operator.Stop()).To(Succeed())
			w.applyCRDs(ctx, own)

			replaced := time.Now()

			w.start()

			since := func(keep func(bed.Request) bool) func() []bed.Request {
				return func() []bed.Request {
					return w.requests(func(r bed.Request) bool { return r.Received.After(replaced) && keep(r) })
				}
			}

			for _, p := range providers {
				Eventually(since(func(r bed.Request) bool {
					return r.Namespace == p.GetNamespace() && r.Verb == "get" && r.Resource == "deployments"
				})).ShouldNot(BeEmpty(), "the objects of %s are compared", p.GetName())
			}

			settled(func() int { return len(since(anything)()) })
			isReady()

			// What it keeps for itself, such as charts, and statuses may differ.
			Expect(harness.Writes(w.bed, harness.OperatorUser, replaced, func(r bed.Request) bool {
				return r.Namespace != harness.OperatorNamespace && r.Subresource != "status"
			})).To(BeEmpty())
			Expect(w.identities(ctx)).To(Equal(identities))
			Expect(harness.Revisions(ctx, w.client)).To(Equal(revisions))

			By("removing the providers, of which nothing is left")

			for _, p := range slices.Backward(providers) {
				update(ctx, w, p, func(p v1alpha2.Provider) {
					p.SetAnnotations(map[string]string{v1alpha2.DeleteCRDsAnnotation: "true"})
				})
				Expect(w.client.Delete(ctx, p)).To(Succeed())
				Eventually(gone(ctx, w, p)).Should(BeTrue())
			}

			Expect(w.clusterObjects(ctx)).To(BeEmpty())
		},
		Entry("with small providers",
			func(testproviders.TB) string { return samples }, "v1.0.0", "v1.0.0"),
		Entry("with real providers", testproviders.Folder, "v1.14.0", "v2.11.1"),
	)
})

// applyCRDs applies the CRDs in a folder, as a user does before an upgrade of the operator.
func (w *world) applyCRDs(ctx context.Context, folder string) {
	GinkgoHelper()
	w.run(ctx, "kubectl", "apply", "--server-side", "-f", folder)
	w.run(ctx, "kubectl", "wait", "crd", "--all", "--for", "condition=Established")
}
