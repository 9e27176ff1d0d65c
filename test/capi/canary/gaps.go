// Package canary finds out when the webhooks of a provider do not answer, by requests that change nothing.
package canary

import (
	"fmt"
	"strings"
	"time"
)

// Gap is a time without a successful attempt.
type Gap struct {
	// From is the start of the first failed attempt. To is the end of the first successful one after it, or of the last
	// failed one if the gap has not ended.
	From time.Time
	To   time.Time
	// Failed is the number of failed attempts.
	Failed int
	// Reason is why the first one failed.
	Reason string
}

func (g Gap) length() time.Duration { return g.To.Sub(g.From) }

// gaps are the gaps of a sequence of attempts.
type gaps struct {
	closed   []Gap
	open     *Gap
	attempts int
}

// record adds an attempt. Attempts must not overlap.
func (g *gaps) record(start, end time.Time, err error) {
	g.attempts++

	if err != nil {
		if g.open == nil {
			g.open = &Gap{From: start, Reason: reason(err)}
		}

		g.open.To = end
		g.open.Failed++

		return
	}

	if g.open != nil {
		g.open.To = end
		g.closed = append(g.closed, *g.open)
		g.open = nil
	}
}

// Summary describes the attempts of a canary, and its gaps.
type Summary struct {
	Canary   string
	Attempts int
	Gaps     []Gap
}

// Failed returns the number of failed attempts.
func (s Summary) Failed() int {
	failed := 0
	for _, gap := range s.Gaps {
		failed += gap.Failed
	}

	return failed
}

// Longest returns the length of the longest gap, and why its first attempt failed; 0 if there is none.
func (s Summary) Longest() (length time.Duration, reason string) {
	for _, gap := range s.Gaps {
		if gap.length() > length {
			length, reason = gap.length(), gap.Reason
		}
	}

	return length, reason
}

// Lengths returns the length of each gap, such as "0.4 s, 1.2 s"; "none" without gaps.
func (s Summary) Lengths() string {
	if len(s.Gaps) == 0 {
		return "none"
	}

	lengths := make([]string, 0, len(s.Gaps))
	for _, gap := range s.Gaps {
		lengths = append(lengths, fmt.Sprintf("%.1f s", gap.length().Seconds()))
	}

	return strings.Join(lengths, ", ")
}

// String returns one line with the attempts and gaps, and the reason of the longest.
func (s Summary) String() string {
	text := fmt.Sprintf("%-21s %5d attempts, %d failed, gaps: %s", s.Canary, s.Attempts, s.Failed(), s.Lengths())
	if _, reason := s.Longest(); reason != "" {
		text += " (" + reason + ")"
	}

	return text
}

// reason returns the end of an API server's error, after the URL of a webhook if it contains one.
func reason(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, `": `); i >= 0 {
		return text[i+len(`": `):]
	}

	return text
}
