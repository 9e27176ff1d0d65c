package preflight_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// TestStandingOfWhatBegins checks what others depend on between the announcement of a change and its revision.
func TestStandingOfWhatBegins(t *testing.T) {
	g := NewWithT(t)
	p := &v1alpha2.InfrastructureProvider{}
	p.Spec.Version = "v1.1.0"
	g.Expect(preflight.StandingOf(p).Installed).To(BeFalse())

	state.Begin(&p.Status, true, 1, "v1.1.0")
	g.Expect(preflight.StandingOf(p).Installed).To(BeTrue(), "no other resource installs the provider")
	g.Expect(p.Status.DesiredVersion).To(Equal("v1.1.0"))

	healthy := "v1.0.0"
	p.Status.InstalledVersion = &healthy
	p.Status.History = []v1alpha2.ReleaseRevision{{Number: 1, Version: healthy, Digest: "v1:one", Status: "deployed"}}
	g.Expect(preflight.StandingOf(p).MayReturn).To(BeFalse())

	begun := *p.DeepCopy()
	state.Begin(&begun.Status, false, 2, "v1.1.0")
	g.Expect(preflight.StandingOf(&begun).MayReturn).To(BeTrue(), "core waits for it")

	failed := state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{
		Number: 2, Version: "v1.1.0", Status: v1alpha2.RevisionFailed, Digest: "v1:two",
	}}
	back := state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{
		Number: 3, Version: healthy, Status: v1alpha2.RevisionPendingRollback, Digest: "v1:three",
	}}
	state.Enter(&begun.Status, failed)
	state.Enter(&begun.Status, back)
	g.Expect(preflight.StandingOf(&begun).MayReturn).To(BeTrue(), "it is about to return")

	state.Begin(&p.Status, false, 2, healthy)
	g.Expect(preflight.StandingOf(p).MayReturn).To(BeFalse(), "the same version is applied again")
}
