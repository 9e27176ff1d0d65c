package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/crds"
)

func TestMigrationsContinue(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()

	g.Expect(continueMigration(&crds.Progress{Done: 200, Total: 1000}, now)).To(Equal(now), "objects are left")
	g.Expect(continueMigration(nil, now)).To(Equal(now.Add(migrationRetry)), "the watch has not shown the end yet")
}
