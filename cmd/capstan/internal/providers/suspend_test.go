package providers

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
)

func TestSuspendArguments(t *testing.T) {
	clitest.WithoutConfiguration(t)

	for name, command := range map[string]clitest.Command{
		"suspend": suspend.command, "pause": pause.command, "resume": resume.command, "unpause": unpause.command,
	} {
		for _, args := range [][]string{nil, {"--all", "aws"}} {
			_, _, err := clitest.Run(t.Context(), command, args...)
			NewWithT(t).Expect(err).To(MatchError(
				"expected either providers or --all; usage: " + name + " {PROVIDER... | --all} [flags]"))
		}

		_, _, err := clitest.Run(t.Context(), command, "--all")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no kubeconfig was found")))
	}
}

func TestSuspensions(t *testing.T) {
	type fields = map[string]any

	for _, c := range []struct {
		change          suspension
		suspend, paused bool
		want            fields
		message         string
	}{
		{suspend, false, false, fields{"suspend": true}, "suspended"},
		{suspend, true, false, nil, "already suspended"},
		{suspend, false, true, fields{"suspend": true}, "suspended"},
		{pause, false, false, fields{"paused": true}, "paused"},
		{pause, false, true, nil, "already paused"},
		{resume, false, false, nil, "not suspended"},
		{resume, true, false, fields{"suspend": false}, "resumed"},
		{resume, false, true, nil, "not suspended"},
		{resume, true, true, fields{"suspend": false}, "resumed, and stays paused"},
		{unpause, false, false, nil, "not paused"},
		{unpause, false, true, fields{"paused": false}, "unpaused"},
	} {
		got, message := c.change.apply(&v1alpha2.ProviderSpec{Suspend: c.suspend, Paused: c.paused})
		NewWithT(t).Expect(got).To(Equal(c.want), "%+v", c)
		NewWithT(t).Expect(message).To(Equal(c.message))
	}
}

func TestRefusedSuspensions(t *testing.T) {
	g := NewWithT(t)
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "aws"}}

	for _, c := range []suspension{suspend, pause, resume} {
		g.Expect(c.refuse(p)).To(Succeed())
	}

	p.Spec.Suspend = true
	g.Expect(suspend.refuse(p)).To(Succeed())
	g.Expect(resume.refuse(p)).To(Succeed())
	g.Expect(unpause.refuse(p)).To(MatchError(ContainSubstring("is suspended")))
	g.Expect(pause.refuse(p)).To(MatchError("InfrastructureProvider capa-system/aws is suspended, so the operator does " +
		"not scale it; run `capstan resume infrastructure-aws` first"))

	now := metav1.Now()
	p.DeletionTimestamp = &now
	g.Expect(suspend.refuse(p)).To(Succeed())
	g.Expect(resume.refuse(p)).To(Succeed())
	g.Expect(pause.refuse(p)).To(MatchError(HavePrefix("InfrastructureProvider capa-system/aws is being deleted: ")))
}

func TestSuspendConditions(t *testing.T) {
	g := NewWithT(t)
	p := &v1alpha2.InfrastructureProvider{}
	p.Generation = 2
	p.Status.ObservedGeneration = 2

	expect := func(isPaused, isResumed, stalled bool) {
		t.Helper()

		done, err := paused(p)
		g.Expect(done).To(Equal(isPaused))
		g.Expect(err != nil).To(Equal(stalled && !isPaused))
		done, err = resumed(p)
		g.Expect(done).To(Equal(isResumed))
		g.Expect(err != nil).To(Equal(stalled))
	}

	expect(false, false, false)

	conditions.MarkTrue(p, v1alpha2.ReadyCondition, v1alpha2.HealthyReason, "ready")
	expect(false, true, false)

	conditions.MarkTrue(p, v1alpha2.PausedCondition, v1alpha2.PausedReason, "paused")
	expect(true, true, false)

	p.Generation = 3

	expect(false, false, false)

	p.Generation = 2
	conditions.MarkFalse(p, v1alpha2.ReadyCondition, v1alpha2.ComponentsFetchErrorReason, "no source")
	conditions.MarkTrue(p, v1alpha2.StalledCondition, v1alpha2.ComponentsFetchErrorReason, "no source")
	expect(true, false, true)

	conditions.Delete(p, v1alpha2.PausedCondition)
	expect(false, false, true)

	now := metav1.Now()
	p.DeletionTimestamp = &now
	done, err := resumed(p)
	g.Expect(done).To(BeTrue())
	g.Expect(err).NotTo(HaveOccurred())

	done, err = paused(nil)
	g.Expect(done).To(BeFalse())
	g.Expect(err).To(HaveOccurred())
}
