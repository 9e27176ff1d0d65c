package transport

import (
	"errors"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestPause: a request is sent again when the server says, in whichever way it does.
func TestPause(t *testing.T) {
	date := func(after time.Duration) string { return time.Now().Add(after).UTC().Format(http.TimeFormat) }

	for name, test := range map[string]struct {
		status   int
		after    string
		min, max time.Duration
	}{
		"429, seconds": {429, "3", 2 * time.Second, 3 * time.Second},
		"429, a date":  {429, date(4 * time.Second), 2 * time.Second, 4 * time.Second},
		"503, seconds": {503, "3", 2 * time.Second, 3 * time.Second},
		"503, a date":  {503, date(4 * time.Second), 2 * time.Second, 4 * time.Second},
		"a past date":  {503, date(-time.Minute), 0, 0},
		"too long":     {503, "60", -1, -1},
		"too late":     {429, date(time.Minute), -1, -1},
		"nothing":      {503, "", 200 * time.Millisecond, 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			policy := *retries
			policy.Backoff = pause // which other tests shorten

			res := &http.Response{StatusCode: test.status, Header: http.Header{}}
			if test.after != "" {
				res.Header.Set("Retry-After", test.after)
			}

			wait, err := policy.Retry(0, res, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(wait).To(And(BeNumerically(">=", test.min), BeNumerically("<=", test.max)))
		})
	}

	wait, err := retries.Retry(0, nil, errors.New("no connection"))
	NewWithT(t).Expect(err).To(HaveOccurred())
	NewWithT(t).Expect(wait).To(BeNumerically("<", 0))
}
