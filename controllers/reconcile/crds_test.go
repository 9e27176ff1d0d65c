package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestMigrationsContinue(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()

	g.Expect(continueMigration(&crds.Progress{Done: 200, Total: 1000}, now)).To(Equal(now), "objects are left")
	g.Expect(continueMigration(nil, now)).To(Equal(now.Add(migrationRetry)), "the watch has not shown the end yet")
}

func TestNothingToMigrate(t *testing.T) {
	g := NewWithT(t)

	g.Expect(nothingToMigrate(nil, false)).To(BeZero(), "there never was anything")
	g.Expect(nothingToMigrate(nil, true)).To(And(
		HaveField("Done", true), HaveField("Reason", v1alpha2.CRDsMigratedReason)))

	for _, before := range []bool{false, true} {
		g.Expect(nothingToMigrate([]string{"as.example.com (in v1; applied for v1.1.0)"}, before)).To(And(
			HaveField("Done", false), HaveField("Reason", v1alpha2.MigrationPendingReason),
			HaveField("Message", ContainSubstring("as.example.com (in v1; applied for v1.1.0)"))))
	}
}

// TestBeginMigration checks that a message names what is rewritten and by whom.
func TestBeginMigration(t *testing.T) {
	g := NewWithT(t)

	g.Expect(beginMigration([]string{"a.example.com", "b.example.com"}, time.Minute)).To(Equal(report.Migration{
		Reason: v1alpha2.WaitingForManagerReason,
		Message: "Objects of a.example.com, b.example.com may be stored in old versions; the provider's manager has 1m0s " +
			"to rewrite them in the storage version, and then the operator does it",
	}))
	g.Expect(beginMigration([]string{"a.example.com"}, 0)).To(Equal(report.Migration{
		Reason: v1alpha2.MigratingCRDsReason,
		Message: "Objects of a.example.com may be stored in old versions; the operator is rewriting them in the storage " +
			"version",
	}), "the manager has no time")
}

// TestManagersTurn checks that a manager that has tried gets no more time.
func TestManagersTurn(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(1, state.StatusDeployed, wanted))
	r.MigrationDelay = time.Minute

	g.Expect(r.managersTurn([]string{"a", "b"}, []string{"a"})).To(Equal(time.Minute))
	g.Expect(r.migration.Reason).To(Equal(v1alpha2.WaitingForManagerReason))
	g.Expect(r.managersTurn([]string{"a"}, []string{"a"})).To(BeZero())
	g.Expect(r.migration.Reason).To(Equal(v1alpha2.MigratingCRDsReason))
}
