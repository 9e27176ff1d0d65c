package health

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestNextRead(t *testing.T) {
	for unhealthy, want := range map[time.Duration]time.Duration{
		0:                startupTime,
		2 * time.Second:  3 * time.Second,
		5 * time.Second:  5 * time.Second,
		10 * time.Second: 10 * time.Second,
		time.Hour:        maxInterval,
	} {
		NewWithT(t).Expect(nextRead(unhealthy)).To(Equal(want), unhealthy.String())
	}
}
