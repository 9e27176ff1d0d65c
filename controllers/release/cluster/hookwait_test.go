package cluster

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAwaitHook(t *testing.T) {
	g := NewWithT(t)
	failure := errors.New("no")

	err := awaitHook(func() error { return failure }, func() { t.Error("a short wait was announced") })
	g.Expect(err).To(MatchError(failure))

	begun := make(chan struct{})
	err = awaitHook(func() error { <-begun; return failure }, func() { close(begun) })
	g.Expect(err).To(MatchError(failure))
}
