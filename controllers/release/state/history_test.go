package state

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestSelect: what is acted on stays in a history that is longer than its limit.
func TestSelect(t *testing.T) {
	const limit = 5

	known := KnownDigests([]string{"v1:x"}, "")
	healthy := func(r *Revision) { r.Healthy = true }
	failed := func(r *Revision) { r.Status = StatusFailed }
	planted := func(r *Revision) { r.Known, r.Healthy = Evidence{}, true }

	for name, c := range map[string]struct {
		length int
		change map[int]change
		want   []int
	}{
		"a short history":             {4, nil, []int{4, 3, 2, 1}},
		"the newest revisions":        {9, nil, []int{9, 8, 7, 6, 5}},
		"the newest healthy revision": {9, map[int]change{1: healthy, 2: healthy}, []int{9, 8, 7, 6, 2}},
		"one that is paused, and one that is not": {
			9, map[int]change{1: healthy, 2: func(r *Revision) { r.Healthy, r.Paused = true, true }}, []int{9, 8, 7, 2, 1},
		},
		"no healthy revision that failed later": {
			9, map[int]change{1: healthy, 2: func(r *Revision) { r.Healthy, r.Status = true, StatusFailed }},
			[]int{9, 8, 7, 2, 1},
		},
		"revisions that are not complete": {
			9, map[int]change{
				1: failed, 3: func(r *Revision) { r.Status = StatusPendingUpgrade },
			},
			[]int{9, 8, 7, 3, 1},
		},
		"a healthy one, among too many that are not complete": {
			9, map[int]change{
				1: healthy, 2: failed, 3: failed, 4: failed, 5: failed, 6: failed, 7: failed, 8: failed, 9: failed,
			},
			[]int{9, 8, 7, 6, 1},
		},
		"no planted records": {
			9, map[int]change{
				1: healthy, 4: planted, 5: planted, 6: planted, 7: planted,
				8: func(r *Revision) { planted(r); r.Status = StatusFailed }, 9: planted,
			},
			[]int{9, 8, 3, 2, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := History{}

			for number := c.length; number > 0; number-- {
				r := Revision{Number: number, Status: StatusSuperseded, Known: known}
				if change := c.change[number]; change != nil {
					change(&r)
				}

				h.Revisions = append(h.Revisions, r)
			}

			var numbers []int
			for _, r := range h.Select(limit) {
				numbers = append(numbers, r.Number)
			}

			g.Expect(numbers).To(Equal(c.want))
		})
	}
}
