package state_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestExcludes(t *testing.T) {
	local := state.Owner{Resource: "a", Home: "berlin", Cluster: "berlin"}
	earlier := state.Owner{Resource: "z", Home: "berlin", Cluster: "berlin"}
	restored := state.Owner{Resource: "a", Home: "paris", Cluster: "paris"}
	remote := state.Owner{Resource: "b", Home: "hub", Cluster: "berlin"}

	for name, c := range map[string]struct {
		owner, other state.Owner
		want         bool
	}{
		"itself":                              {owner: local, other: local},
		"a resource of another cluster":       {owner: local, other: remote, want: true},
		"the other way around":                {owner: remote, other: local, want: true},
		"of two clusters that reach a third":  {remote, state.Owner{Resource: "c", Home: "spare", Cluster: "berlin"}, true},
		"an earlier resource of the cluster":  {owner: earlier, other: local},
		"records from a backup, restored":     {owner: local, other: restored},
		"records without an owner":            {other: local},
		"a resource whose cluster is unknown": {owner: local, other: state.Owner{Resource: "b"}},
		"an owner whose cluster was unknown":  {owner: state.Owner{Resource: "a"}, other: remote},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(c.owner.Excludes(c.other)).To(Equal(c.want))
		})
	}
}
