package hooks_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/release/hooks"
)

func TestAwait(t *testing.T) {
	g := NewWithT(t)
	failure := errors.New("no")

	err := hooks.Await(func() error { return failure }, func() { t.Error("a short wait was announced") })
	g.Expect(err).To(MatchError(failure))

	begun := make(chan struct{})
	err = hooks.Await(func() error { <-begun; return failure }, func() { close(begun) })
	g.Expect(err).To(MatchError(failure))
}
