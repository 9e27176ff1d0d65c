package e2e

import (
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// Cluster API 1.15 will drop the six docker* CRDs of infrastructure-docker, whose kinds Dev* replace.
var _ = Describe("A real docker provider that drops CRDs", Ordered, func() {
	const next = "v1.15.0"

	var (
		w      *world
		docker *chain
	)

	BeforeAll(func(ctx SpecContext) {
		_ = testproviders.Folder(GinkgoT())

		w = newWorld(routed)
		startWebhooks(ctx, w,
			"capi-webhook-service.cluster-api-system", "capd-webhook-service.infrastructure-docker-system")
		w.start()

		newChain(w, harness.Wanted{Label: "cluster-api", Version: "v1.14.0"}).install(ctx)

		docker = newChain(w, harness.Wanted{Label: "infrastructure-docker", Version: "v1.14.0"})
		docker.install(ctx)
		docker.create(ctx, dockerObjects)

		release, err := harness.Load(ctx, testproviders.Folder(GinkgoT()), docker.wanted)
		Expect(err).NotTo(HaveOccurred())

		dropped := regexp.MustCompile(`(?m)^  name: docker\w+\.infrastructure\.cluster\.x-k8s\.io$`)
		documents := strings.Split(string(release.Bundle.Components), "\n---\n")

		var kept []string

		for _, document := range documents {
			if !dropped.MatchString(document) {
				kept = append(kept, document)
			}
		}

		Expect(len(documents) - len(kept)).To(Equal(6))

		release.Bundle.Version, release.Bundle.Components = next, []byte(strings.Join(kept, "\n---\n"))
		release.Bundle.Metadata = append(release.Bundle.Metadata, "\n  - {major: 1, minor: 15, contract: v1beta2}\n"...)
		Expect(w.client.Create(ctx, must(release.ConfigMap()))).To(Succeed())
	})

	It("is not upgraded while they have objects, and is when a user allows it", func(ctx SpecContext) {
		const left = "dockerclusters.infrastructure.cluster.x-k8s.io (default/dockercluster)"

		update(ctx, w, docker.provider, func(p v1alpha2.Provider) { p.GetSpec().Version = next })
		Eventually(w.read(ctx, docker.provider)).Should(beStalled(v1alpha2.UnsafeCRDsReason,
			"v1.14.0 runs; v1.15.0 is not applied", left, ": not in v1.15.0", "delete them, or replace them"))

		message := v1alpha2.FindCondition(docker.provider.GetConditions(), v1alpha2.ReadyCondition).Message
		GinkgoWriter.Println(message)

		_, allowance, found := strings.Cut(message, v1alpha2.AllowUnsafeCRDAnnotation+": ")
		Expect(found).To(BeTrue(), message)

		update(ctx, w, docker.provider, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.AllowUnsafeCRDAnnotation: allowance})
		})
		Eventually(w.read(ctx, docker.provider)).Should(beReady(next))
		Expect(docker.provider.GetStatus().OrphanedCRDs).To(And(HaveLen(6), HaveEach(HavePrefix("docker"))))
	})
})
