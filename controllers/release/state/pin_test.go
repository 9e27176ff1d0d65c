package state

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var (
	asked = v1alpha2.RevisionRequest{UID: "uid", Generation: 2, RequestedAt: "noon"}
	given = v1alpha2.RevisionInputs{Variables: "v", Manifests: "m", Source: "s"}
)

type inputs = v1alpha2.RevisionInputs

// with returns the inputs with a change.
func with(change func(*inputs)) inputs {
	changed := given
	change(&changed)

	return changed
}

func TestDifferences(t *testing.T) {
	for name, tt := range map[string]struct {
		before, now inputs
		want        []Difference
	}{
		"the Secret":     {given, with(func(b *inputs) { b.Variables = "" }), []Difference{DifferentVariables}},
		"the manifests":  {given, with(func(b *inputs) { b.Manifests = "x" }), []Difference{DifferentManifests}},
		"the source":     {given, with(func(b *inputs) { b.Source = "x" }), []Difference{DifferentSource}},
		"something else": {given, given, []Difference{DifferentConfiguration}},
		"unknown":        {inputs{}, given, []Difference{DifferentConfiguration}},
		"several": {
			given, with(func(b *inputs) { b.Variables, b.Source = "x", "x" }),
			[]Difference{DifferentVariables, DifferentSource},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Differences(tt.before, tt.now)).To(Equal(tt.want))
		})
	}
}

func TestPin(t *testing.T) {
	made := func(status v1alpha2.RevisionStatus, changes ...change) Revision {
		record := func(r *Revision) { r.Request, r.Inputs = asked, given }
		return revision(status, "made", append([]change{record}, changes...)...)
	}
	installed := history(made(v1alpha2.RevisionDeployed, healthy))
	edited := with(func(b *inputs) { b.Variables = "x" })

	nextSpec, requestedLater := asked, asked
	nextSpec.Generation++
	requestedLater.RequestedAt = "later"

	upgradeAsked := asked
	upgradeAsked.AutomaticUpgrade = "v1.0.1"
	automatic := func(r *Revision) { r.Request = upgradeAsked }

	for name, tt := range map[string]struct {
		history History
		asked   v1alpha2.RevisionRequest
		digest  string
		now     inputs
		watched bool
		want    int // the number of the revision
	}{
		"nothing changed":         {installed, asked, "made", given, true, 0},
		"the operator":            {installed, asked, "new", given, true, 1},
		"the Secret":              {installed, asked, "new", edited, false, 1},
		"the Secret, watched":     {installed, asked, "new", edited, true, 0},
		"the spec":                {installed, nextSpec, "new", given, false, 0},
		"requested":               {installed, requestedLater, "new", given, false, 0},
		"not known":               {installed, asked, "", inputs{}, false, 1},
		"not known, requested":    {installed, requestedLater, "", inputs{}, false, 1},
		"not known, another spec": {installed, nextSpec, "", inputs{}, false, 0},
		"nothing installed":       {history(), asked, "new", given, false, 0},
		"an older Capstan's":      {history(deployed), asked, "new", given, false, 0},

		"the Secret, never healthy":   {history(made(v1alpha2.RevisionDeployed)), asked, "new", edited, false, 0},
		"the operator, never healthy": {history(made(v1alpha2.RevisionDeployed)), asked, "new", given, false, 1},
		"the Secret, rolled back": {
			history(worked, made(v1alpha2.RevisionFailed), rolledBack), asked, "new", edited, false, 0,
		},
		"the operator, rolled back": {
			history(worked, made(v1alpha2.RevisionFailed), rolledBack), asked, "new", given, false, 2,
		},
		"an automatic upgrade that is given up": {
			history(made(v1alpha2.RevisionSuperseded, healthy), made(v1alpha2.RevisionFailed, automatic)),
			asked, "new", edited, false, 1,
		},
		"an automatic upgrade": {
			history(made(v1alpha2.RevisionSuperseded, healthy), made(v1alpha2.RevisionFailed, automatic)),
			upgradeAsked, "new", given, false, 2,
		},
		"another program's": {
			history(made(v1alpha2.RevisionSuperseded, healthy), revision(v1alpha2.RevisionDeployed, "", byOthers,
				func(r *Revision) { r.Request = asked })), asked, "new", given, false, 0,
		},
		"another program's, not known": {
			history(made(v1alpha2.RevisionSuperseded, healthy), revision(v1alpha2.RevisionDeployed, "", byOthers,
				func(r *Revision) { r.Request = asked })), asked, "", inputs{}, false, 2,
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
