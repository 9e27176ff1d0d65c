package view

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestReason: the history names what has changed, and no value.
func TestReason(t *testing.T) {
	type revision = v1alpha2.ReleaseRevision

	manager := func(settings map[string]any) map[string]any {
		return map[string]any{"deployments": map[string]any{"manager": settings}, "variables": map[string]any{"A": "x"}}
	}

	installed := manager(map[string]any{"replicas": 1})

	for name, c := range map[string]struct {
		change        func(*revision)
		values, known map[string]any
		want          string
	}{
		"the version":    {change: func(r *revision) { r.Version = "v1.1.0" }, want: "version"},
		"a rollback":     {change: func(r *revision) { r.RollbackTo = 1 }, want: "rollback to revision 1"},
		"paused":         {change: func(r *revision) { r.Paused = true }, want: "paused"},
		"other settings": {change: func(r *revision) { r.ContentDigest = "b" }, want: "settings"},
		"nothing":        {change: func(*revision) {}, want: "applied again"},
		"a Secret":       {change: func(r *revision) { r.Inputs.Variables = "b" }, want: "variables"},
		"an automatic upgrade": {
			change: func(r *revision) { r.Version, r.Request.AutomaticUpgrade = "v1.1.0", "v1.1.0" }, want: "automatic upgrade",
		},
		"an adoption": {
			change: func(r *revision) { r.Adopted, r.AdoptedVersion, r.ContentDigest = 3, "v0.9.0", "b" },
			want:   "settings, 3 objects adopted from v0.9.0",
		},
		"settings by name": {
			change: func(r *revision) { r.Version, r.Inputs.Variables = "v1.1.0", "b" }, known: installed,
			values: map[string]any{
				"deployments": map[string]any{"manager": map[string]any{
					"replicas": 2, "containers": map[string]any{"manager": map[string]any{"args": map[string]any{"--v": "5"}}},
				}},
				"variables": map[string]any{"A": "secret", "B": "y"},
			},
			want: "version, A, B, manager.args.--v, replicas",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := revision{Number: 1, Version: "v1.0.0", ContentDigest: "a"}
			after := before
			after.Number = 2
			c.change(&after)

			NewWithT(t).Expect(reason(after, &before, changedSettings(c.known, c.values))).To(Equal(c.want))
		})
	}

	g := NewWithT(t)
	g.Expect(reason(revision{Number: 1}, nil, nil)).To(Equal("installation"))
	g.Expect(reason(revision{Number: 7}, nil, nil)).To(BeEmpty(), "the one before is not known")
	g.Expect(reason(revision{Number: 7, Version: "v1.0.0", ContentDigest: "a"}, &revision{Number: 6}, nil)).To(
		Equal("replaces helm's revision 6"))
}
