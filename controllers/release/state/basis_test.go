package state

import (
	"testing"

	. "github.com/onsi/gomega"
)

var (
	asked = Request{UID: "uid", Generation: 2, RequestedAt: "noon"}
	basis = Basis{
		Variables: "v", Manifests: "m", Source: "s", ImageRegistry: "r",
		ImageOverrides: "o", Managers: "a",
	}
)

// with returns the basis with a change.
func with(change func(*Basis)) Basis {
	changed := basis
	change(&changed)

	return changed
}

func TestDifferences(t *testing.T) {
	for name, tt := range map[string]struct {
		before, now Basis
		want        []Difference
	}{
		"the Secret":     {basis, with(func(b *Basis) { b.Variables = "" }), []Difference{DifferentVariables}},
		"the manifests":  {basis, with(func(b *Basis) { b.Manifests = "x" }), []Difference{DifferentManifests}},
		"the source":     {basis, with(func(b *Basis) { b.Source = "x" }), []Difference{DifferentSource}},
		"the registry":   {basis, with(func(b *Basis) { b.ImageRegistry = "" }), []Difference{DifferentImageRegistry}},
		"the managers":   {basis, with(func(b *Basis) { b.Managers = "" }), []Difference{DifferentManagers}},
		"the overrides":  {basis, with(func(b *Basis) { b.ImageOverrides = "" }), []Difference{DifferentImageOverrides}},
		"something else": {basis, basis, []Difference{DifferentConfiguration}},
		"unknown":        {Basis{}, basis, []Difference{DifferentConfiguration}},
		"inputs first": {
			basis, with(func(b *Basis) { b.Variables, b.ImageRegistry = "x", "mirror" }),
			[]Difference{DifferentVariables, DifferentImageRegistry},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tt.before.Differences(tt.now)).To(Equal(tt.want))
		})
	}
}

func TestPin(t *testing.T) {
	made := func(status Status, changes ...change) Revision {
		record := func(r *Revision) { r.Request, r.Basis = asked, basis }
		return revision(status, "made", append([]change{record}, changes...)...)
	}
	installed := history(made(StatusDeployed, healthy))
	upgraded := with(func(b *Basis) { b.ImageRegistry = "mirror" })
	edited := with(func(b *Basis) { b.Variables, b.ImageRegistry = "x", "mirror" })

	nextSpec, requestedLater := asked, asked
	nextSpec.Generation++
	requestedLater.RequestedAt = "later"

	upgradeAsked := asked
	upgradeAsked.Automatic = "v1.0.1"
	automatic := func(r *Revision) { r.Request = upgradeAsked }

	for name, tt := range map[string]struct {
		history History
		asked   Request
		digest  string
		now     Basis
		watched bool
		want    int // the number of the revision
	}{
		"nothing changed":         {installed, asked, "made", basis, true, 0},
		"the operator":            {installed, asked, "new", upgraded, true, 1},
		"the Secret":              {installed, asked, "new", edited, false, 1},
		"the Secret, watched":     {installed, asked, "new", edited, true, 0},
		"the spec":                {installed, nextSpec, "new", upgraded, false, 0},
		"requested":               {installed, requestedLater, "new", upgraded, false, 0},
		"not known":               {installed, asked, "", Basis{}, false, 1},
		"not known, requested":    {installed, requestedLater, "", Basis{}, false, 1},
		"not known, another spec": {installed, nextSpec, "", Basis{}, false, 0},
		"nothing installed":       {history(), asked, "new", basis, false, 0},
		"an older Capstan's":      {history(deployed), asked, "new", basis, false, 0},

		"the Secret, never healthy":   {history(made(StatusDeployed)), asked, "new", edited, false, 0},
		"the operator, never healthy": {history(made(StatusDeployed)), asked, "new", upgraded, false, 1},
		"the Secret, rolled back": {
			history(worked, made(StatusFailed), rolledBack), asked, "new", edited, false, 0,
		},
		"the operator, rolled back": {
			history(worked, made(StatusFailed), rolledBack), asked, "new", upgraded, false, 2,
		},
		"an automatic upgrade that is given up": {
			history(made(StatusSuperseded, healthy), made(StatusFailed, automatic)), asked, "new", edited, false, 1,
		},
		"an automatic upgrade": {
			history(made(StatusSuperseded, healthy), made(StatusFailed, automatic)), upgradeAsked, "new", upgraded, false, 2,
		},
		"another program's": {
			history(made(StatusSuperseded, healthy), revision(StatusDeployed, "", byOthers,
				func(r *Revision) { r.Request = asked })), asked, "new", upgraded, false, 0,
		},
		"another program's, not known": {
			history(made(StatusSuperseded, healthy), revision(StatusDeployed, "", byOthers,
				func(r *Revision) { r.Request = asked })), asked, "", Basis{}, false, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pin, pinned := tt.history.Pin(tt.asked, tt.digest, tt.now, func(Difference) bool { return tt.watched })
			g.Expect(pinned).To(Equal(tt.want != 0))
			g.Expect(pin.Number).To(Equal(tt.want))
			g.Expect(len(pin.Differences) > 0).To(Equal(pinned && tt.digest != ""))
		})
	}
}
