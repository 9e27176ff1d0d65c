package e2e

import (
	"context"
	"maps"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/mod/semver"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// There are no objects of the providers' own kinds, since nothing would convert them.
var _ = Describe("Every real release", Ordered, func() {
	var (
		w          *world
		cli        commandLine
		repository string
		// core and others are the versions of core and of the other providers, oldest first.
		core   []string
		others map[string][]string
		// contracts are those of the versions, by label.
		contracts map[string][]string
	)

	BeforeAll(func(ctx SpecContext) {
		repository = withNamedExtension(onlyNightly())
		others, contracts = map[string][]string{}, map[string][]string{}

		folders, err := filepath.Glob(filepath.Join(repository, "*", "v*"))
		Expect(err).NotTo(HaveOccurred())

		for _, folder := range folders {
			label := filepath.Base(filepath.Dir(folder))
			others[label] = append(others[label], filepath.Base(folder))
		}

		for _, versions := range others {
			semver.Sort(versions)
		}

		core = others["cluster-api"]
		delete(others, "cluster-api")

		w = newWorld()
		cli = newCommandLine(w)
		w.createOperatorDeployment(ctx)
		w.start()
	})

	// become applies versions of providers in one commit, by label, and waits until they are ready.
	become := func(ctx context.Context, versions map[string]string) {
		GinkgoHelper()

		variables := map[string]string{"GCP_B64ENCODED_CREDENTIALS": "e30K"}
		maps.Copy(variables, harness.AWSVariables)

		var providers []v1alpha2.Provider

		for label, version := range versions {
			release, err := harness.Load(ctx, repository, harness.Wanted{Label: label, Version: version, Variables: variables})
			Expect(err).NotTo(HaveOccurred())
			Expect(release.Prepare(ctx, w.client)).To(Succeed())

			providers = append(providers, release.Resource())
		}

		w.applyTogether(ctx, providers)

		for _, p := range providers {
			label := v1alpha2.Label(p)
			Eventually(w.read(ctx, p)).WithTimeout(2*time.Minute).Should(beReady(versions[label]), label)

			contracts[label] = append(contracts[label], *w.read(ctx, p)(Default).GetStatus().Contract)
		}
	}

	It("of core becomes ready, one after the other", func(ctx SpecContext) {
		Expect(core).NotTo(BeEmpty())

		for _, version := range core {
			become(ctx, map[string]string{"cluster-api": version})
		}
	})

	It("of the other providers becomes ready, one after the other", func(ctx SpecContext) {
		for i := 0; ; i++ {
			versions := map[string]string{}

			for label, all := range others {
				if i < len(all) {
					versions[label] = all[i]
				}
			}

			if len(versions) == 0 {
				return
			}

			become(ctx, versions)
		}
	})

	It("that preceded another one is rolled back to, or its managers do not know the CRDs", func(ctx SpecContext) {
		for label, versions := range others {
			newest := len(versions) - 1

			for i := newest - 1; i >= 0; i-- {
				_, failure, code := cli.run(ctx, "rollback", label, strconv.Itoa(i+1))
				if code == 1 && contracts[label][i] != contracts[label][newest] {
					Expect(failure).To(ContainSubstring("%s cannot work with CustomResourceDefinition ", versions[i]))
					continue
				}

				Expect(code).To(BeZero(), failure)
			}
		}

		Expect(cli.succeed(ctx, "rollback", "cluster-api")).To(ContainSubstring(core[len(core)-2] + " is healthy"))
	})

	It("is removed, and leaves nothing behind", func(ctx SpecContext) {
		cli.succeed(ctx, "delete", "--all", "--include-crd", "--include-namespace", "--wait", "--yes")
		Expect(w.clusterObjects(ctx)).To(BeEmpty())
	})
})
