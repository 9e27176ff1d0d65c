package limit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/limit"
)

func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		memory := limit.NewMemory(3, 2)
		acquire := func(tenant string, size int64) func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()

			release, err := memory.Acquire(ctx, tenant, size)
			if err != nil {
				return nil
			}

			return release
		}

		first := acquire("a", 2)
		g.Expect(first).NotTo(BeNil())
		g.Expect(acquire("a", 1)).To(BeNil(), "the tenant has its part")

		go func() {
			release, err := memory.Acquire(t.Context(), "a", 2)
			if err == nil {
				release()
			}
		}()

		synctest.Wait()

		other := acquire("b", 1)
		g.Expect(other).NotTo(BeNil(), "a tenant does not wait for another one that waits")
		g.Expect(acquire("c", 1)).To(BeNil(), "all is in use")
		first()

		synctest.Wait()

		third := acquire("c", 2)
		g.Expect(third).NotTo(BeNil())
		third()
		other()
		g.Expect(acquire("a", 2)).NotTo(BeNil())
	})
}
