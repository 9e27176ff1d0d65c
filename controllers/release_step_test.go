package controllers

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReleaseNamesFitHelm(t *testing.T) {
	g := NewWithT(t)
	g.Expect(releaseName("infrastructure-aws")).To(Equal("infrastructure-aws"))

	long := "runtime-extension-" + strings.Repeat("x", 45)
	g.Expect(releaseName(long)).To(And(HaveLen(maxReleaseName), HavePrefix("runtime-extension-xxx")))
	g.Expect(releaseName(long)).NotTo(Equal(releaseName(long+"y")), "what is cut off still counts")
	g.Expect(releaseName(strings.Repeat("ab-", 20))).NotTo(ContainSubstring("--"))
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
