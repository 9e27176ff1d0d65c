package controllers

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
)

func TestReleaseNamesFitHelm(t *testing.T) {
	g := NewWithT(t)
	g.Expect(releaseName("infrastructure-aws")).To(Equal("infrastructure-aws"))
	long := "runtime-extension-" + strings.Repeat("x", 45)
	g.Expect(releaseName(long)).To(And(HaveLen(maxReleaseName), HavePrefix("runtime-extension-xxx")))
	g.Expect(releaseName(long)).NotTo(Equal(releaseName(long+"y")), "what is cut off still counts")
	g.Expect(releaseName(strings.Repeat("ab-", 20))).NotTo(ContainSubstring("--"))
}

// ours is a revision that Capstan made.
func ours(number int, status release.Status, digest string) release.Revision {
	return release.Revision{Number: number, Origin: number, Status: status, Digest: digest, Changed: time.Now()}
}

func TestWhenAReleaseIsChanged(t *testing.T) {
	theirs := release.Revision{Number: 3, Status: release.StatusDeployed}
	longAgo := ours(2, release.StatusFailed, "wanted")
	longAgo.Changed = time.Now().Add(-time.Hour)
	for name, test := range map[string]struct {
		condition release.Condition
		revisions []release.Revision
		act       bool
		waits     bool
	}{
		"in sync: no":                                        {release.InSync, []release.Revision{ours(1, release.StatusDeployed, "wanted")}, false, false},
		"absent: yes":                                        {release.Absent, nil, true, false},
		"made from something else: yes":                      {release.OutOfSync, []release.Revision{ours(1, release.StatusDeployed, "other")}, true, false},
		"left by a process that is gone: yes":                {release.Abandoned, []release.Revision{ours(1, release.StatusPendingInstall, "wanted")}, true, false},
		"changed by a person, the resource is as it was: no": {release.Foreign, []release.Revision{theirs, ours(2, release.StatusSuperseded, "wanted")}, false, false},
		"changed by a person, then the resource: yes":        {release.Foreign, []release.Revision{theirs, ours(2, release.StatusSuperseded, "before")}, true, false},
		"installed by a person, now a resource: yes":         {release.Foreign, []release.Revision{theirs}, true, false},
		"failed just now: later":                             {release.Failed, []release.Revision{ours(2, release.StatusFailed, "wanted")}, false, true},
		"failed long ago: yes":                               {release.Failed, []release.Revision{longAgo}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			observed := release.Observation{Revisions: test.revisions}
			state := release.State{Condition: test.condition}
			state.Revision, _ = observed.Newest()
			act, err := worthActing(&v1alpha2.CoreProvider{}, observed, state, "wanted")
			g.Expect(act).To(Equal(test.act))
			if test.waits {
				g.Expect(err).To(BeAssignableToTypeOf(&failedError{}))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
		})
	}
}

func TestFailuresInARowAreTriedLessAndLessOften(t *testing.T) {
	g := NewWithT(t)
	var revisions []release.Revision
	last := time.Duration(0)
	for i := range 12 {
		wait := failedWait(release.Observation{Revisions: revisions}, "wanted")
		g.Expect(wait).To(Or(BeNumerically(">", last), Equal(longestRetry)), "after %d failures", i)
		last = wait
		revisions = append([]release.Revision{ours(i+1, release.StatusFailed, "wanted")}, revisions...)
	}
	g.Expect(last).To(Equal(longestRetry))
	g.Expect(failedWait(release.Observation{Revisions: revisions}, "something new")).To(Equal(shortestRetry))
}

func TestAProblemIsLookedAtAgainAfterAsLongAsItHasStood(t *testing.T) {
	g := NewWithT(t)
	stood := func(d time.Duration) *metav1.Condition {
		return &metav1.Condition{LastTransitionTime: metav1.NewTime(time.Now().Add(-d))}
	}
	g.Expect(retryAfter(outcome{}, stood(0))).To(Equal(shortestRetry))
	g.Expect(retryAfter(outcome{}, stood(time.Minute))).To(BeNumerically("~", time.Minute, time.Second))
	g.Expect(retryAfter(outcome{}, stood(24*time.Hour))).To(Equal(longestRetry))
	g.Expect(retryAfter(outcome{at: time.Now().Add(time.Hour)}, stood(0))).To(BeNumerically("~", time.Hour, time.Second))
}
