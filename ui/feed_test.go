package ui

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// flaky is a cluster that answers lists with an error, if there is one.
type flaky struct {
	client.Reader

	err   error
	lists atomic.Int64
}

func (f *flaky) List(context.Context, client.ObjectList, ...client.ListOption) error {
	f.lists.Add(1)
	return f.err
}

// TestCheck checks that pages show that the cluster does not answer, and that it is only asked while a page is open.
func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		cluster := &flaky{}
		feed := &Feed{}

		go feed.Check(t.Context(), cluster, "")

		time.Sleep(time.Minute)
		g.Expect(cluster.lists.Load()).To(BeZero())

		page := feed.subscribe()

		time.Sleep(time.Minute)
		g.Expect(cluster.lists.Load()).To(BeNumerically("~", 6, 1))
		g.Expect(feed.stale()).To(BeEmpty())

		cluster.err = errors.New("connection refused")

		time.Sleep(checkInterval + time.Second)
		g.Expect(feed.stale()).To(Equal("The cluster does not answer, so what you see may be outdated: connection refused"))
		g.Expect(page.wake).To(Receive())

		cluster.err = nil

		time.Sleep(checkInterval)
		g.Expect(feed.stale()).To(BeEmpty())
	})
}
