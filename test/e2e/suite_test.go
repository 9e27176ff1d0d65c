// Package e2e holds the scenarios: the real operator on real control planes, seen through the API
// server and the helm programs.
package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/fleet"
)

// root is the module's folder.
const root = "../.."

// program is the operator, built once.
var program string

func TestScenarios(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(200 * time.Millisecond)
	RunSpecs(t, "Scenarios")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error

	program, err = fleet.BuildOperator(ctx, root, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
})

// world is a control plane with the operator's CRDs, and mostly an operator.
type world struct {
	bed      *bed.Bed
	client   client.Client
	operator *fleet.Operator
	log      string
}

// newWorld starts a control plane without an operator; it ends with the container of specs that
// calls it.
func newWorld(ctx context.Context, apiServerFlags ...string) *world {
	GinkgoHelper()

	dir := GinkgoT().TempDir()
	b, err := bed.Start(ctx, bed.Options{APIServerFlags: apiServerFlags})
	Expect(err).NotTo(HaveOccurred())

	w := &world{bed: b, log: filepath.Join(dir, "operator.log")}

	DeferCleanup(func() {
		if w.operator != nil {
			Expect(w.operator.Stop()).To(Succeed())
		}

		Expect(b.Stop()).To(Succeed())
	})

	w.client, err = fleet.NewClient(b.Config())
	Expect(err).NotTo(HaveOccurred())
	Expect(fleet.InstallCRDs(ctx, w.client, root)).To(Succeed())

	return w
}

// start starts the operator.
func (w *world) start(flags ...string) {
	GinkgoHelper()

	var err error

	w.operator, err = fleet.StartOperator(w.bed, program, w.log, flags...)
	Expect(err).NotTo(HaveOccurred())
}

// install loads a release of the repository and creates its resource.
func (w *world) install(ctx context.Context, repository string, wanted fleet.Wanted) v1alpha2.Provider {
	GinkgoHelper()

	release, err := fleet.Load(ctx, repository, wanted)
	Expect(err).NotTo(HaveOccurred())
	p, err := release.Install(ctx, w.client)
	Expect(err).NotTo(HaveOccurred())

	return p
}

// showLog puts the operator's log into the report of a spec that failed.
func (w *world) showLog() {
	if CurrentSpecReport().Failed() {
		data, _ := os.ReadFile(w.log)
		lines := slices.Collect(strings.Lines(string(data)))
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, `"msg":"Starting `) })
		AddReportEntry("operator log", strings.Join(lines[max(0, len(lines)-60):], ""))
	}
}

// How long scenarios look on when nothing should happen: a few looks; and, for the idle operator,
// until writes have settled and then long enough for every periodic task to come round once.
const (
	fiveLooks  = time.Second
	idleSettle = 3 * time.Second
	idleWatch  = 20 * time.Second
)

// samples is the project's own local repository.
var samples = filepath.Join(root, fleet.Samples)
