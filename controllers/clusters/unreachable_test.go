package clusters

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestBackoff(t *testing.T) {
	g := NewWithT(t)
	backoff := newBackoff()

	for _, seconds := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 120, 120, 120} {
		g.Expect(backoff.Step()).To(Equal(seconds * time.Second))
	}
}
