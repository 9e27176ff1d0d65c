package ui_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/upgradeplan"
	"github.com/capstan-project/capstan/ui"
)

// TestOffers checks that no page waits for a source: it first shows what the status of the resources says, and the
// answers of the sources once they are there. Few sources are asked at the same time, and each only once.
func TestOffers(t *testing.T) {
	g := NewWithT(t)
	answer := make(chan error)

	var asked, asking, most atomic.Int32

	read := func(ctx context.Context, _ v1alpha2.Provider) ([]upgradeplan.Version, error) {
		asked.Add(1)
		most.Store(max(most.Load(), asking.Add(1)))

		defer asking.Add(-1)

		select {
		case err := <-answer:
			return []upgradeplan.Version{{Version: "v3.0.0", Contract: "v1beta2"}}, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s := newSite(t, func(o *ui.Options) { o.Offers = ui.NewOffers(t.Context(), read, o.Feed) })

	const many = 12

	providers := make([]v1alpha2.Provider, many)
	for i := range providers {
		providers[i] = ready(fmt.Sprintf("aws-%d", i))
	}

	s.cluster.set(providers...)
	events := s.follow(t)

	_, body := get(t, s.url+"plan", nil)
	g.Expect(body).To(And(
		ContainSubstring("the source is being asked"), ContainSubstring("v2.1.0"), Not(ContainSubstring("v3.0.0"))))

	answer <- errors.New("connection refused")

	for range many - 1 {
		answer <- nil
	}

	g.Eventually(events).Should(Receive(HavePrefix("changed: ")), "the page reads itself again")
	g.Eventually(func() string {
		_, body = get(t, s.url+"plan", nil)
		return body
	}).Should(And(
		Not(ContainSubstring("is being asked")), ContainSubstring("v3.0.0"), ContainSubstring("from the source, 0s ago"),
		ContainSubstring("The source cannot be read: connection refused"), ContainSubstring("v2.1.0"),
	))
	g.Expect(asked.Load()).To(BeEquivalentTo(many))
	g.Expect(most.Load()).To(BeNumerically("<=", 4))
}
