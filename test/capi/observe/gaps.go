// Package observe watches a cluster while a test changes it: canaries find out when webhooks do not answer, and
// records of objects show whether they were kept.
package observe

import (
	"fmt"
	"strings"
	"time"
)

// Gap is a time without a successful attempt.
type Gap struct {
	// From is the start of the first failed attempt, and To the end of the first successful one after it.
	From, To time.Time
	// Attempts is the number of failed attempts.
	Attempts int
	// Err is the error of the first one.
	Err error
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

	switch {
	case err == nil && g.open != nil:
		g.open.To = end
		g.closed = append(g.closed, *g.open)
		g.open = nil
	case err != nil && g.open == nil:
		g.open = &Gap{From: start, Attempts: 1, Err: err}
	case err != nil:
		g.open.Attempts++
	}
}

// Summary describes the gaps of a canary since the previous summary.
type Summary struct {
	Canary   string
	Attempts int
	Gaps     []Gap
}

// Longest returns the length of the longest gap; 0 if there is none.
func (s Summary) Longest() time.Duration {
	var longest time.Duration
	for _, gap := range s.Gaps {
		longest = max(longest, gap.length())
	}

	return longest
}

// String returns one line with the length of each gap, and the error that started the longest.
func (s Summary) String() string {
	if len(s.Gaps) == 0 {
		return fmt.Sprintf("%-21s %5d attempts, no gap", s.Canary, s.Attempts)
	}

	lengths := make([]string, 0, len(s.Gaps))
	cause := ""

	for _, gap := range s.Gaps {
		lengths = append(lengths, fmt.Sprintf("%.1f s", gap.length().Seconds()))

		if gap.length() == s.Longest() {
			cause = reason(gap.Err)
		}
	}

	return fmt.Sprintf("%-21s %5d attempts, %d gaps: %s (%s)",
		s.Canary, s.Attempts, len(s.Gaps), strings.Join(lengths, ", "), cause)
}

// reason returns the end of an API server's error, after the URL of a webhook if it contains one.
func reason(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, `": `); i >= 0 {
		return text[i+len(`": `):]
	}

	return text
}
