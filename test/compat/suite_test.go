// Package compat tests that Cluster API's users can keep what they have: the released clusterctl, built from its Go
// module, works with providers that Capstan has installed, and resources of cluster-api-operator work with Capstan.
package compat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/harness/suite"
	"github.com/capstan-project/capstan/test/testproviders"
)

const (
	// root is the module's root.
	root = "../.."
	// operatorUser is the operator's user name in the bed's audit log.
	operatorUser = "system:serviceaccount:capstan-system:capstan"
)

// Shared by all scenarios: the programs.
var (
	operatorProgram   string
	clusterctlProgram string
)

func TestCompatibility(t *testing.T) {
	// clusterctl waits for minutes.
	suite.Suite{Name: "Compatibility", Patience: 3 * time.Minute, Target: "compat", Variable: "COMPAT"}.Run(t)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	set, err := tools.Find()
	Expect(err).NotTo(HaveOccurred())
	Expect(set.WithClusterctl().Build(ctx, GinkgoWriter)).To(Succeed())
	clusterctlProgram = set.Program(tools.Clusterctl)

	operatorProgram, err = harness.Program(ctx, root, GinkgoT().TempDir(), harness.OperatorProgram)
	Expect(err).NotTo(HaveOccurred())
})

// world is a control plane with the operator's CRDs, for one container of specs.
type world struct {
	*bed.Bed
	admin client.Client
	// kubeconfig of a user who may do everything.
	kubeconfig string
	// config is clusterctl's configuration.
	config string
}

// newWorld starts a control plane without an operator. clusterctl installs providers there from a local repository.
func newWorld(ctx context.Context, repository string) *world {
	GinkgoHelper()

	w := &world{Bed: bedtest.Start(GinkgoT(), bed.Options{CRDs: harness.OwnCRDs()})}

	var err error

	w.admin, err = harness.PrepareForTest(ctx, w.Config())
	Expect(err).NotTo(HaveOccurred())
	w.kubeconfig, err = w.KubeconfigFor("jane")
	Expect(err).NotTo(HaveOccurred())

	w.config = configure(repository)

	return w
}

// startOperator runs the operator as a ServiceAccount until the container of specs ends.
func (w *world) startOperator(flags ...string) {
	GinkgoHelper()

	account, err := w.KubeconfigFor(operatorUser)
	Expect(err).NotTo(HaveOccurred())

	log := filepath.Join(GinkgoT().TempDir(), "operator.log")
	operator, err := harness.StartOperatorAs(w.Bed, account, []string{operatorProgram}, log, flags...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(operator.Stop()).To(Succeed())

		content, err := os.ReadFile(log)
		Expect(err).NotTo(HaveOccurred())
		GinkgoWriter.Printf("operator:\n%s\n", content)
	})
}

// run runs a program of the bed, as a user would, and returns its standard output.
func (w *world) run(ctx context.Context, program string, args ...string) string {
	GinkgoHelper()
	return bedtest.Output(GinkgoT(), w.Command(ctx, program, args...))
}

// install creates the resource of a provider of a local repository.
func (w *world) install(ctx context.Context, repository, label, version string) v1alpha2.Provider {
	GinkgoHelper()

	p, err := load(ctx, repository, label, version).Install(ctx, w.admin)
	Expect(err).NotTo(HaveOccurred())

	return p
}

// installed returns a function for Eventually that returns the healthy version of a provider, if it is ready.
func (w *world) installed(ctx context.Context, p v1alpha2.Provider) func(Gomega) string {
	return func(g Gomega) string {
		g.Expect(w.admin.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())

		status := p.GetStatus()
		g.Expect(status.ObservedGeneration).To(Equal(p.GetGeneration()))
		g.Expect(p.GetConditions()).To(ContainElement(And(
			HaveField("Type", v1alpha2.ReadyCondition), HaveField("Status", BeEquivalentTo("True")))))
		g.Expect(status.InstalledVersion).NotTo(BeNil())

		return *status.InstalledVersion
	}
}

// load loads a release from a local repository.
func load(ctx context.Context, repository, label, version string) *harness.Release {
	GinkgoHelper()

	release, err := harness.Load(ctx, repository, harness.Wanted{Label: label, Version: version})
	Expect(err).NotTo(HaveOccurred())

	return release
}

// samples returns a copy of the samples' repository, to which tests add files.
func samples() string {
	GinkgoHelper()

	folder := GinkgoT().TempDir()
	Expect(os.CopyFS(folder, os.DirFS(filepath.Join(root, testproviders.Samples)))).To(Succeed())

	return folder
}

// configure writes a configuration of clusterctl whose providers are those of a local repository, and returns its
// path.
func configure(repository string) string {
	GinkgoHelper()

	var content strings.Builder

	for name, value := range harness.AWSVariables {
		fmt.Fprintf(&content, "%s: %q\n", name, value)
	}

	content.WriteString("providers:\n")

	labels, err := os.ReadDir(repository)
	Expect(err).NotTo(HaveOccurred())

	for _, label := range labels {
		kind, name := v1alpha2.ParseLabel(label.Name())

		// Any version may be in the address: clusterctl looks for the others next to it.
		versions, err := filepath.Glob(filepath.Join(repository, label.Name(), "v*.*.*"))
		Expect(err).NotTo(HaveOccurred())

		if len(versions) > 0 {
			url := filepath.Join(versions[0], kind.ComponentsFile())
			fmt.Fprintf(&content, "- {name: %s, type: %s, url: %q}\n", name, kind, url)
		}
	}

	file := filepath.Join(GinkgoT().TempDir(), "clusterctl.yaml")
	Expect(os.WriteFile(file, []byte(content.String()), 0o600)).To(Succeed())

	return file
}
