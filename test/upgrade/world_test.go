package upgrade

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

// election are the flags of operators of which one leads.
var election = []string{
	"--enable-leader-election", "--leader-election-namespace=default", "--leader-election-lease-duration=4s",
	"--leader-election-renew-deadline=3s", "--leader-election-retry-period=500ms",
}

// world is two control planes: that of the operators, and a remote one.
type world struct {
	bed, there *bed.Bed
	client     client.Client
	remote     client.Client
	logs       string
	leader     *harness.Operator
	release    release // of the leader
}

func newWorld(ctx context.Context, first release) *world {
	GinkgoHelper()

	w := &world{
		bed: bedtest.Start(GinkgoT(), bed.Options{}), there: bedtest.Start(GinkgoT(), bed.Options{}),
		logs: GinkgoT().TempDir(), release: first,
	}

	var err error

	w.client, err = harness.Prepare(ctx, w.bed.Config(), first.source)
	Expect(err).NotTo(HaveOccurred())
	w.remote, err = harness.NewClient(w.there.Config())
	Expect(err).NotTo(HaveOccurred())

	w.leader = w.start(first)

	DeferCleanup(func() error { return w.leader.Stop() })

	return w
}

// show adds the statuses, and the end of the operators' logs, to the report of a spec that failed.
func (w *world) show(ctx context.Context) {
	AddReportEntry("statuses", w.look(ctx).statuses)

	logs, _ := filepath.Glob(filepath.Join(w.logs, "*.log"))
	for _, log := range logs {
		data, err := os.ReadFile(log)
		Expect(err).NotTo(HaveOccurred())

		lines := slices.Collect(strings.Lines(string(data)))
		AddReportEntry(filepath.Base(log), strings.Join(lines[max(0, len(lines)-40):], ""))
	}
}

// start starts another operator.
func (w *world) start(r release) *harness.Operator {
	GinkgoHelper()

	kubeconfig, err := w.bed.KubeconfigFor(r.user())
	Expect(err).NotTo(HaveOccurred())
	operator, err := harness.StartOperatorAs(w.bed, kubeconfig, []string{r.program},
		filepath.Join(w.logs, r.user()+".log"), election...)
	Expect(err).NotTo(HaveOccurred())

	return operator
}

// replace starts another operator, which waits as long as the leader runs, updates the CRDs as a user would before
// that, and stops the leader. It returns what the next leader has written until it has looked at everything.
func (w *world) replace(ctx context.Context, next release) []string {
	GinkgoHelper()

	crds := filepath.Join(next.source, "config/crd/bases")
	bedtest.Output(GinkgoT(), w.bed.Command(ctx, "kubectl", "replace", "-f", crds))

	begun := time.Now()
	operator := w.start(next)

	By("running both for a while")
	Eventually(func() []bed.Request { return w.requests(next, begun, bed.Request.Lease) }).ShouldNot(BeEmpty())
	Consistently(func() []string { return w.writes(next, begun) }).WithTimeout(3 * time.Second).Should(BeEmpty())

	By("stopping the leader")

	before := w.holder(ctx)
	Expect(w.leader.Stop()).To(Succeed())
	Eventually(func() string { return w.holder(ctx) }).ShouldNot(Or(BeEmpty(), Equal(before)))

	w.leader, w.release = operator, next

	w.settle(begun)

	return w.writes(next, begun)
}

// settle waits until the leader has had nothing to do for a while.
func (w *world) settle(since time.Time) {
	GinkgoHelper()

	last := -1

	Eventually(func() bool {
		before := last
		last = len(w.requests(w.release, since, func(r bed.Request) bool { return r.Verb != "watch" && !r.Lease() }))

		return last > 0 && before == last
	}).WithPolling(3 * time.Second).WithTimeout(2 * time.Minute).Should(BeTrue())
}

// requests returns the requests of an operator since a time.
func (w *world) requests(r release, since time.Time, keep func(bed.Request) bool) []bed.Request {
	GinkgoHelper()

	requests, err := w.bed.Requests(func(request bed.Request) bool {
		return request.User == r.user() && request.Received.After(since) && keep(request)
	})
	Expect(err).NotTo(HaveOccurred())

	return requests
}

// writes returns what an operator has changed since a time.
func (w *world) writes(r release, since time.Time) []string {
	GinkgoHelper()

	writes, err := harness.Writes(w.bed, r.user(), since, func(bed.Request) bool { return true })
	Expect(err).NotTo(HaveOccurred())

	return writes
}

// holder returns who leads; empty for none.
func (w *world) holder(ctx context.Context) string {
	GinkgoHelper()

	leases := &coordinationv1.LeaseList{}
	Expect(w.client.List(ctx, leases, client.InNamespace("default"))).To(Succeed())
	Expect(leases.Items).To(HaveLen(1), "all operators know the same Lease")

	return ptr.Deref(leases.Items[0].Spec.HolderIdentity, "")
}

// seen is what must not change.
type seen struct {
	// objects are those of the providers, pods included, and records those of Helm, by cluster.
	objects, records map[string]map[string]string
	// statuses are those of the provider resources, by kind, namespace and name.
	statuses map[string]status
}

// status is what a user sees of a provider.
type status struct {
	conditions         []string
	installed, desired string
	revision           int64
	release            string
	history            []string
}

// look returns what there is now.
func (w *world) look(ctx context.Context) seen {
	GinkgoHelper()

	found := seen{
		objects: map[string]map[string]string{}, records: map[string]map[string]string{}, statuses: map[string]status{},
	}

	for name, c := range map[string]client.Client{"here": w.client, "there": w.remote} {
		var err error

		found.objects[name], err = harness.Identities(ctx, c)
		Expect(err).NotTo(HaveOccurred())
		found.records[name], err = harness.Revisions(ctx, c)
		Expect(err).NotTo(HaveOccurred())
	}

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()
		Expect(w.client.List(ctx, list)).To(Succeed())

		for _, p := range list.GetItems() {
			found.statuses[v1alpha2.FullName(p)] = statusOf(p)
		}
	}

	return found
}

func statusOf(p v1alpha2.Provider) status {
	s := p.GetStatus()
	found := status{installed: ptr.Deref(s.InstalledVersion, ""), desired: s.DesiredVersion}

	for _, c := range s.Conditions {
		found.conditions = append(found.conditions, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}

	if s.Release != nil {
		found.revision, found.release = s.Release.Revision, s.Release.Status
	}

	for _, r := range s.History {
		found.history = append(found.history, fmt.Sprintf("%d %s %s %s", r.Revision, r.Version, r.Status, r.Digest))
	}

	return found
}
