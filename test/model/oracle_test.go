package model

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestOracle: what is installed for v1.1.0, which follows a healthy v1.0.0, and the property that does not hold.
func TestOracle(t *testing.T) {
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

	revision := func(number int, version string, status v1alpha2.RevisionStatus) Record {
		r := Record{Content: Content{Wanted: Wanted{Version: version}}}
		r.Number, r.Origin, r.Status, r.Healthy = number, number, status, true
		r.Time.Time, r.LastTransitionTime.Time, r.Digest = began, began.Add(time.Second), "v1:known"

		return r
	}
	failed := func(failure v1alpha2.RevisionFailure) Record {
		r := revision(2, "v1.1.0", v1alpha2.RevisionFailed)
		r.Healthy, r.Failure = false, failure

		return r
	}
	byOthers := func(number int, version string) Record {
		r := revision(number, version, v1alpha2.RevisionDeployed)
		r.Origin = 0

		return r
	}
	back := func(number, to int, version string) Record {
		r := revision(number, version, v1alpha2.RevisionDeployed)
		r.RollbackTo = to

		return r
	}
	first := func() Record { return revision(1, "v1.0.0", v1alpha2.RevisionSuperseded) }
	upgraded := func() Snapshot {
		r := revision(2, "v1.1.0", v1alpha2.RevisionDeployed)

		return Snapshot{
			Records: []Record{r, first()}, Objects: r.Objects(), Stored: []string{"v1"}, Contract: "v1beta1",
			Ready: metav1.ConditionTrue, Now: began.Add(time.Minute),
		}
	}

	for name, c := range map[string]struct {
		prepare func(*Oracle)
		change  func(*Snapshot)
		want    Property
	}{
		"an upgrade": {nil, func(*Snapshot) {}, ""},
		"a version that was not asked for": {
			nil, func(s *Snapshot) { s.Records[0].Wanted.Version = "v1.2.0" }, Asked,
		},
		"the same again": {
			func(o *Oracle) {
				o.Check(upgraded())
				o.Settled()
			},
			func(s *Snapshot) {
				s.Records = append([]Record{revision(3, "v1.1.0", v1alpha2.RevisionDeployed)}, s.Records...)
			}, Asked,
		},
		"a change of a user that is undone": {
			func(o *Oracle) {
				o.Check(upgraded())
				o.Settled()
				o.Check(Snapshot{Records: []Record{byOthers(3, "v1.0.0")}})
			},
			func(s *Snapshot) {
				s.Records = []Record{revision(4, "v1.1.0", v1alpha2.RevisionDeployed), byOthers(3, "v1.0.0")}
			}, Hold,
		},
		"an uninstall that is undone": {
			func(o *Oracle) {
				o.Check(upgraded())
				o.Settled()
				o.Check(Snapshot{})
			},
			func(s *Snapshot) { s.Records = []Record{revision(1, "v1.1.0", v1alpha2.RevisionDeployed)} }, Hold,
		},
		"managers that cannot convert": {
			func(o *Oracle) { o.before.Stored = []string{"v2"} }, func(*Snapshot) {}, Convertible,
		},
		"a rollback to what was never healthy": {
			nil, func(s *Snapshot) {
				old := first()
				old.Healthy = false
				s.Records = []Record{back(3, 1, "v1.0.0"), failed(v1alpha2.FailureRejected), old}
			}, Target,
		},
		"a rollback after a passing error": {
			nil, func(s *Snapshot) {
				s.Records = []Record{back(3, 1, "v1.0.0"), failed(v1alpha2.FailureUnavailable), first()}
			}, Passing,
		},
		"a failure without a reason": {
			func(o *Oracle) { o.Check(upgraded()) },
			func(s *Snapshot) { s.Records[0] = failed(v1alpha2.FailureRejected) }, Passing,
		},
		"a failure before the timeout": {
			func(o *Oracle) { o.Check(upgraded()) },
			func(s *Snapshot) { s.Records[0] = failed(v1alpha2.FailureUnhealthy) }, Passing,
		},
		"nothing installed": {nil, func(s *Snapshot) { s.Records = nil }, Converges},
		"an upgrade that has not begun": {
			nil, func(s *Snapshot) { s.Records = []Record{revision(1, "v1.0.0", v1alpha2.RevisionDeployed)} }, Converges,
		},
		"two deployed revisions": {
			nil, func(s *Snapshot) { s.Records[1].Status = v1alpha2.RevisionDeployed }, History,
		},
		"an object that is left": {nil, func(s *Snapshot) { s.Objects["a"] = Object{Version: "v1.0.0"} }, Objects},
		"another contract":       {nil, func(s *Snapshot) { s.Contract = "v1beta2" }, Contract},
		"not ready":              {nil, func(s *Snapshot) { s.Ready = metav1.ConditionFalse }, Ready},
		"never marked healthy":   {nil, func(s *Snapshot) { s.Records[0].Healthy = false }, Target},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			oracle := &Oracle{}
			oracle.Created(Wanted{Version: "v1.0.0"})
			oracle.Asked(Wanted{Version: "v1.1.0"})

			if c.prepare != nil {
				c.prepare(oracle)
			}

			now := upgraded()
			c.change(&now)

			violation := oracle.CheckIdle(now)
			if c.want == "" {
				g.Expect(violation).To(BeNil())
				return
			}

			g.Expect(violation).NotTo(BeNil())
			g.Expect(violation.Property).To(Equal(c.want))
		})
	}

	NewWithT(t).Expect((&Oracle{}).CheckGone(upgraded()).Property).To(Equal(Removal))
}
