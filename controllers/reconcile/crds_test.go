package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
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
