package provider

import (
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// situation is what a reconcile has found out and done, and how care and change ended.
type situation struct {
	r            *run
	care, change Result
	suspended    bool
}

// ended returns how the reconcile ended.
func (s situation) ended() Summary {
	if s.suspended {
		return Summary{Result: s.r.suspended()}
	}

	return s.r.summarize(s.care, s.change)
}

// generator generates situations as reconciles bring them about: states and decisions are those of the operator's own
// rules for random histories.
type generator struct{ *rand.Rand }

func newGenerator() generator {
	return generator{rand.New(rand.NewPCG(31, 2026))} // the same each time
}

func oneOf[T any](g generator, values ...T) T { return values[g.IntN(len(values))] }

// often reports true nine times of ten, and rarely once.
func (g generator) often() bool  { return g.IntN(10) != 0 }
func (g generator) rarely() bool { return g.IntN(10) == 0 }
func (g generator) coin() bool   { return g.IntN(2) == 0 }

var (
	versionOf = map[string]string{wanted: "v1.1.0", former: "v1.0.0", older: "v0.9.0"}

	older = "an older digest"

	// problems are results of steps that end a change or care, with messages as the operator's checks write them.
	problems = []Result{
		refused, retrying,
		{
			Outcome: Waiting, Condition: v1alpha2.PreflightCheckCondition, Reason: v1alpha2.WaitingForCoreProviderReadyReason,
			message: because("waiting for CoreProvider cluster-api to become ready"), Limited: true,
		},
		{
			Outcome: Stalled, Condition: v1alpha2.PreflightCheckCondition, Reason: v1alpha2.SecretNotFoundReason,
			message: because("Secret capa-system/aws-variables does not exist; create it or correct spec.secretName"),
		},
		{
			Outcome: Stalled, Condition: v1alpha2.CRDsSafeCondition, Reason: v1alpha2.UnsafeCRDsReason,
			message: because("awsclusters.infrastructure.cluster.x-k8s.io: v1beta1 is removed"),
		},
		{
			Outcome: Retrying, Condition: v1alpha2.ProviderInstalledCondition, Reason: v1alpha2.ComponentsFetchErrorReason,
			message: because("cannot reach example.com"), Limited: true,
		},
		{
			Outcome: Waiting, Reason: v1alpha2.ClusterUnreachableReason, message: because("cluster one does not answer"),
			Limited: true, At: now.Add(time.Minute),
		},
	}
)

// situation returns a random situation.
func (g generator) situation() situation {
	s := situation{r: newTestRun(), suspended: g.rarely()}
	s.r.policy = state.Policy{
		Retries: g.IntN(3), Timeout: s.r.policy.Timeout, Rollback: g.coin(), Paused: g.coin(), Revert: g.rarely(),
		Existed: g.often(), SpecChanged: g.rarely(), Requested: g.rarely(), Now: now,
	}

	s.r.installed.observed = g.often()
	s.r.self.Cluster, s.r.identified = "uid", g.often()

	if s.r.installed.observed {
		s.r.installed.History.Revisions = g.revisions()
		g.look(s.r)
	}

	s.r.provider.GetSpec().Release = &v1alpha2.ReleaseSpec{
		Drift: oneOf(g, v1alpha2.DriftCorrect, v1alpha2.DriftWarn, v1alpha2.DriftOff),
	}
	*s.r.provider.GetStatus() = g.status(s.r)
	g.decide(&s)
	s.r.offersKnown = g.coin()

	if g.rarely() {
		s.r.migration = migration{reason: v1alpha2.WaitingForManagerReason, message: "The storage version has changed"}
	}

	if !s.suspended && len(s.r.installed.History.Revisions) == 2 {
		s.r.done.undeleted = "ConfigMap a/old is being deleted, but its finalizers hold it: example.com/hold"
	}

	if g.rarely() {
		s.r.target, s.r.RemoteInterval = &clusters.Target{Remote: true}, time.Minute
	}

	return s
}

// revisions returns a history, newest first.
func (g generator) revisions() []state.Revision {
	var all []state.Revision

	for number := g.IntN(5); number > 0; number-- {
		r := revision(number, oneOf(g, v1alpha2.RevisionSuperseded, v1alpha2.RevisionFailed), oneOf(g, wanted, former, older))
		if len(all) == 0 && g.often() {
			r.Status = oneOf(g, v1alpha2.RevisionDeployed, v1alpha2.RevisionDeployed, v1alpha2.RevisionDeployed,
				v1alpha2.RevisionFailed, v1alpha2.RevisionPendingUpgrade, v1alpha2.RevisionUninstalled)
		}

		r.Version = versionOf[r.ContentDigest]
		r.Healthy, r.Paused = g.coin(), g.rarely()

		if g.rarely() {
			r.Wave = new(0)
		}

		if g.often() {
			r.Digest = "v1:known"
		}

		r.LastTransitionTime.Time = now.Add(-time.Duration(g.IntN(600)) * time.Second)
		r.Time.Time = r.LastTransitionTime.Add(-time.Duration(g.IntN(60)) * time.Second)
		r.Adopted = oneOf(g, 0, 0, 1, 2)

		if r.Status == v1alpha2.RevisionFailed {
			r.Failure = oneOf(g,
				v1alpha2.FailureUnhealthy, v1alpha2.FailureFinal, v1alpha2.FailureRejected, v1alpha2.FailureUnavailable)
		}

		switch g.IntN(6) {
		case 0:
			r.Origin = oneOf(g, 0, max(0, number-1)) // helm upgrade, helm rollback
		case 1:
			r.RollbackTo = max(0, number-2)
		}

		all = append(all, r)
	}

	return all
}

// look adds what is seen of the newest revision.
func (g generator) look(r *run) {
	if len(r.installed.History.Revisions) == 0 {
		return
	}

	newest := &r.installed.History.Revisions[0]
	newest.Unreadable = g.rarely()
	r.installed.Newest = *newest

	switch {
	case newest.Unreadable:
		return
	case !newest.Confirmed():
		r.installed.Newest = state.Revision{}
		r.installed.unconfirmed = release.Unconfirmed(r.installed.History.Release, newest.Number, 0)

		return
	}

	r.installed.Record = &release.Record{
		AppVersion: newest.Version, Contract: "v1beta2", Description: "Upgrade complete",
	}
	if newest.Status == v1alpha2.RevisionFailed {
		r.installed.Record.Description = "not healthy within 5m: Deployment manager: Replicas: 0/1"
	}

	if g.rarely() {
		return
	}

	r.installed.health = &health.Report{}

	if g.coin() {
		manager := unhealthy("Replicas: 0/1", oneOf(g, status.InProgressStatus, status.FailedStatus))
		manager.Final = g.rarely()
		r.installed.health.Objects = []health.ObjectHealth{manager}
	}

	if newest.Paused && g.coin() {
		r.installed.replicas.running = true
		r.installed.replicas.wrong = []string{"Deployment capa-system/manager: has spec.replicas 1 instead of 0; scale it"}
	}

	if g.rarely() {
		r.installed.replicas.kept = []string{
			"container manager of Deployment capa-system/manager stays at the image a:v1 instead of a:v2",
		}
	}

	if newest.Status == v1alpha2.RevisionDeployed && g.coin() {
		r.installed.deviations = &[]deviation{}
		if g.rarely() {
			*r.installed.deviations = drifted("manager")
		}
	}
}

// status returns the status that an earlier reconcile has left. What that had seen need not be true any more.
func (g generator) status(r *run) v1alpha2.ProviderStatus {
	status := v1alpha2.ProviderStatus{
		ObservedGeneration: r.provider.GetGeneration() - int64(g.IntN(2)), DesiredVersion: "v1.1.0",
	}
	before := &conditions{generation: status.ObservedGeneration, now: now.Add(-time.Duration(g.IntN(600)) * time.Second)}

	if g.coin() {
		before.markTrue(v1alpha2.ProviderInstalledCondition, v1alpha2.ProviderInstalledReason,
			"Release infrastructure-aws has v1.0.0 as revision 1")

		status.Release = &v1alpha2.ReleaseStatus{Name: "infrastructure-aws", Namespace: "capa-system", Revision: 1}
	}

	if g.rarely() {
		before.markTrue(v1alpha2.PausedCondition, v1alpha2.PausedReason, "The Deployments have no replicas")
	}

	if g.rarely() {
		before.markFalse(v1alpha2.PreflightCheckCondition, v1alpha2.UnsupportedProviderDowngradeReason,
			"v0.9.0 cannot work with CustomResourceDefinition awsclusters.infrastructure.cluster.x-k8s.io of v1.0.0")
	}

	switch g.IntN(4) {
	case 0:
		before.end(Result{
			Outcome: Ready, Reason: v1alpha2.HealthyReason, message: because("v1.0.0 is healthy"),
		}, false)
	case 1:
		before.end(oneOf(g, problems...), g.coin())
	}

	status.Conditions = before.list

	return status
}

// decide adds how far the change got.
func (g generator) decide(s *situation) {
	s.care = Result{}
	if s.r.installed.Record != nil && (s.r.installed.health == nil || g.rarely()) {
		s.care = oneOf(g, problems...) // what could not be looked at is not reported
	}

	s.suspended = s.suspended && (s.r.installed.Record == nil) == (s.r.installed.health == nil)

	change := &s.r.change
	change.begun = true

	// The change ended before it knew about the release.
	if !s.r.installed.observed || g.rarely() {
		change.begun = g.coin()
		s.change = oneOf(g, problems...)

		return
	}

	history := s.r.installed.History
	change.release.State = state.Determine(history, wanted, state.Rules{LockTimeout: 10 * time.Minute, Now: now})
	change.release.Decision = state.Next(history, wanted, change.release.State, s.r.policy)
	change.passed = g.coin()

	// A change that is due is applied, unless something prevents it.
	failed := change.release.State.State == state.RolledBack || change.release.State.State == state.Failed
	if change.release.Decision.Action == state.Apply && !failed || g.rarely() {
		s.change = oneOf(g, problems...)
	}

	if change.release.Decision.HoldsUninstalled(history) {
		s.change = s.r.uninstalledByOthers()
	}

	if change.release.Decision.Action == state.Rollback && g.coin() {
		s.r.done.refusal = "not rolled back to v1.0.0 (revision 1): its CRDs are newer"
	}

	if change.release.State.State == state.InSync && g.rarely() {
		change.release.Pinned = true
		change.release.Pin = state.Pin{Differences: []state.Difference{state.DifferentVariables}}
		change.release.Pin.Number = 1
	}

	if change.release.Pinned && g.coin() {
		change.problem = oneOf(g, problems...)
	}
}

// isTrue reports whether a condition of a report is True.
func isTrue(made Report, name string) bool {
	return made.condition(name).Status == metav1.ConditionTrue
}

// texts returns all that people read of a report.
func texts(made Report) []string {
	var all []string

	for _, c := range made.Status.Conditions {
		all = append(all, c.Message)
	}

	for _, e := range made.Events {
		all = append(all, e.Note)
	}

	if last := made.Status.AutomaticUpgrade; last != nil && last.Last != nil {
		all = append(all, last.Last.Message)
	}

	return slices.DeleteFunc(append(all, made.Retry), func(text string) bool { return text == "" })
}
