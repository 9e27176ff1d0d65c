package e2e

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

// read returns a function for Eventually that reads the current resource.
func (w *world) read(ctx context.Context, p v1alpha2.Provider) func(Gomega) v1alpha2.Provider {
	return func(g Gomega) v1alpha2.Provider {
		g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		return p
	}
}

// haveCondition matches a provider with a condition that has the status, the reason, and a message
// that contains all the parts.
func haveCondition(
	conditionType string,
	status metav1.ConditionStatus,
	reason string,
	parts ...string,
) types.GomegaMatcher {
	message := []types.GomegaMatcher{Not(BeEmpty())}
	for _, part := range parts {
		message = append(message, ContainSubstring(part))
	}

	return WithTransform(func(p v1alpha2.Provider) []metav1.Condition { return p.GetConditions() },
		ContainElement(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
			"Type": Equal(conditionType), "Status": Equal(status), "Reason": Equal(reason), "Message": And(message...),
		})))
}

// beReady matches a provider that is installed and healthy at the version.
func beReady(version string) types.GomegaMatcher {
	return And(
		haveCondition(v1alpha2.ReadyCondition, metav1.ConditionTrue, v1alpha2.HealthyReason, version),
		haveCondition(v1alpha2.ProviderInstalledCondition, metav1.ConditionTrue, v1alpha2.ProviderInstalledReason),
		haveCondition(v1alpha2.PreflightCheckCondition, metav1.ConditionTrue, v1alpha2.PreflightChecksPassedReason),
		WithTransform(
			func(p v1alpha2.Provider) *string { return p.GetStatus().InstalledVersion },
			gstruct.PointTo(Equal(version)),
		),
		WithTransform(
			func(p v1alpha2.Provider) bool { return p.GetStatus().ObservedGeneration == p.GetGeneration() },
			BeTrue(),
		),
	)
}

// notBeReady matches a provider that is not ready for this reason.
func notBeReady(reason string, parts ...string) types.GomegaMatcher {
	return haveCondition(v1alpha2.ReadyCondition, metav1.ConditionFalse, reason, parts...)
}

// beReadyWith matches a provider that is ready with a reason other than Healthy.
func beReadyWith(reason string, parts ...string) types.GomegaMatcher {
	return haveCondition(v1alpha2.ReadyCondition, metav1.ConditionTrue, reason, parts...)
}

// failPreflight matches a provider that fails a preflight check.
func failPreflight(reason string, parts ...string) types.GomegaMatcher {
	return haveCondition(v1alpha2.PreflightCheckCondition, metav1.ConditionFalse, reason, parts...)
}

// notBeInstalled matches a provider that could not be installed. Ready tells why.
func notBeInstalled(reason string, parts ...string) types.GomegaMatcher {
	return And(
		haveCondition(v1alpha2.ProviderInstalledCondition, metav1.ConditionFalse, reason),
		notBeReady(reason, parts...),
	)
}

// beStalled matches a provider that makes no progress until something changes. Ready tells why.
func beStalled(reason string, parts ...string) types.GomegaMatcher {
	return And(
		haveCondition(v1alpha2.StalledCondition, metav1.ConditionTrue, reason), notBeReady(reason, parts...),
	)
}

// beDrifted matches a provider with objects that differ from its release.
func beDrifted(parts ...string) types.GomegaMatcher {
	return haveCondition(v1alpha2.DriftedCondition, metav1.ConditionTrue, v1alpha2.DriftDetectedReason, parts...)
}

// helmRelease is a line of `helm list` or `helm history`.
type helmRelease struct {
	Name, Namespace, Status, Chart, Description string
	AppVersion                                  string `json:"app_version"`
}

// helm runs one of the helm programs and parses its JSON output.
func (w *world) helm(ctx context.Context, program string, args ...string) []helmRelease {
	GinkgoHelper()

	var releases []helmRelease
	Expect(json.Unmarshal([]byte(w.run(ctx, program, append(args, "-o", "json")...)), &releases)).To(Succeed())

	return releases
}

// run runs a program of the bed, as a user would, and returns its standard output.
func (w *world) run(ctx context.Context, program string, args ...string) string {
	GinkgoHelper()
	return bedtest.Output(GinkgoT(), w.bed.Command(ctx, program, args...))
}

// operatorWrites returns the operator's requests that changed something, or tried to, and for which
// keep returns true. Leases and events are not included.
func (w *world) operatorWrites(keep func(bed.Request) bool) []bed.Request {
	GinkgoHelper()

	requests, err := w.bed.Requests(func(r bed.Request) bool {
		return r.User == harness.OperatorUser && r.Write() && !r.Lease() && r.Resource != "events" && keep(r)
	})
	Expect(err).NotTo(HaveOccurred())

	return requests
}

// anything keeps every request.
func anything(bed.Request) bool { return true }

// undisturbed notes what runs in the cluster, and returns a check that it still runs: that no pod and no object of a
// provider was replaced, that Helm's revisions are the same, and that by the API server's audit log the operator has
// written nothing since a time but statuses and what is expected.
func (w *world) undisturbed(ctx context.Context) func(p v1alpha2.Provider, since time.Time, expected ...string) {
	GinkgoHelper()

	identities, revisions := w.identities(ctx), must(harness.Revisions(ctx, w.client))

	return func(p v1alpha2.Provider, since time.Time, expected ...string) {
		GinkgoHelper()
		Consistently(func() ([]string, error) {
			return harness.Writes(w.bed, harness.OperatorUser, since, harness.Concerns(p.GetNamespace()))
		}, quietPeriod).Should(ConsistOf(expected))
		Expect(w.identities(ctx)).To(Equal(identities))
		Expect(harness.Revisions(ctx, w.client)).To(Equal(revisions))
	}
}

// settled waits until a count, such as of requests, stays the same for a while, and returns it.
func settled(count func() int) int {
	GinkgoHelper()

	last := -1

	Eventually(func() bool { before := last; last = count(); return before == last }).WithPolling(idleSettle).
		Should(BeTrue())

	return last
}
