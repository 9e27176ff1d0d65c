package observe

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/capi/canary"
)

// TestEvent: the worst of all canaries counts.
func TestEvent(t *testing.T) {
	g := NewWithT(t)
	start := time.Now()
	gap := func(length time.Duration, failed int) canary.Gap {
		return canary.Gap{From: start, To: start.Add(length), Failed: failed}
	}

	event := Event{}
	event.Add(canary.Summary{})
	g.Expect(event).To(Equal(Event{}))

	event.Add(canary.Summary{Gaps: []canary.Gap{gap(time.Second, 3), gap(2*time.Second, 1)}})
	event.Add(canary.Summary{Gaps: []canary.Gap{gap(1500*time.Millisecond, 2)}})
	g.Expect(event).To(Equal(Event{Longest: 2, Refused: 4, Until: start.Add(2 * time.Second)}))
}

// TestTable: runs need not have the same events. Of several with the same name, the worst counts.
func TestTable(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()

	g.Expect(LoadRuns(folder)).To(BeEmpty())

	g.Expect(Run{Name: "on", Events: []Event{
		{Name: "upgrade", Seconds: 67.4}, {Name: "restart", Seconds: 50, Longest: 0.44, Refused: 1},
		{Name: "restart", Seconds: 49, Longest: 0.4, Refused: 2},
	}}.Save(folder)).To(Succeed())
	g.Expect(Run{Name: "off", Events: []Event{{Name: "an earlier run"}}}.Save(folder)).To(Succeed())
	g.Expect(Run{Name: "off", Events: []Event{
		{Name: "upgrade", Seconds: 56.1, Longest: 1.4, Refused: 6},
	}}.Save(folder)).To(Succeed())

	runs, err := LoadRuns(folder)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Table(runs)).To(Equal(`| event | off | on |
|---|---|---|
| upgrade | 1.4 s, 6 refused, of 56 s | none, of 67 s |
| restart | – | 0.4 s, 2 refused, of 50 s |
`))
}
