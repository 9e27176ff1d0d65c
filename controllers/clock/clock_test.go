package clock

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestOffset(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

	// Each answer is written at a time of the API server, after a request of a millisecond.
	for name, tt := range map[string]struct {
		before, ahead, want time.Duration
	}{
		"the clocks agree":                {0, 0, 0},
		"half a second is measured too":   {0, 500 * time.Millisecond, 500 * time.Millisecond},
		"the API server is ahead":         {0, 10 * time.Minute, 10 * time.Minute},
		"this process is ahead":           {0, -10 * time.Minute, -10 * time.Minute},
		"the API server's clock was set":  {10 * time.Minute, 0, 0},
		"it is still ahead, as was known": {10 * time.Minute, 10 * time.Minute, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := &Clock{offset: tt.before}

			for i := range 50 {
				sent := noon.Add(time.Duration(i) * 137 * time.Millisecond)
				date := sent.Add(tt.ahead).Truncate(time.Second)
				c.observe(date, sent, sent.Add(time.Millisecond))
			}

			g.Expect(c.offset).To(BeNumerically("~", tt.want, 150*time.Millisecond))

			settled := c.offset
			c.observe(noon.Add(tt.ahead), noon, noon.Add(time.Minute))
			g.Expect(c.offset).To(Equal(settled), "an answer after a minute tells nothing")
		})
	}
}

func TestTimes(t *testing.T) {
	g := NewWithT(t)
	date := time.Now().Add(time.Hour)
	c := &Clock{}

	response, err := c.Wrap(dated(date)).RoundTrip(&http.Request{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())

	second := time.Second + 100*time.Millisecond
	g.Expect(c.Now()).To(BeTemporally("~", date, second))
	g.Expect(c.Since(date.Add(-time.Minute))).To(BeNumerically("~", time.Minute, second))
	g.Expect(c.Local(date)).To(BeTemporally("~", time.Now(), second))
	g.Expect(c.Local(time.Time{})).To(BeZero())
}

func TestWithoutAnswers(t *testing.T) {
	for name, c := range map[string]*Clock{"none": nil, "no answer yet": {}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(c.Now()).To(BeTemporally("~", time.Now(), time.Second))
			g.Expect(c.Local(time.Unix(1, 0))).To(Equal(time.Unix(1, 0)))
		})
	}
}

// dated answers with a date.
type dated time.Time

func (d dated) RoundTrip(*http.Request) (*http.Response, error) {
	header := http.Header{"Date": {time.Time(d).UTC().Format(http.TimeFormat)}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: http.NoBody}, nil
}
