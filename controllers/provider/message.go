package provider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/controllers/object"
)

// message is what Ready says, in this order. It becomes a text where a condition or an event is written.
type message struct {
	// runs is what runs, and wanted what becomes of what is wanted. Together they are the headline.
	runs, wanted string
	causes       []string
	// notes are what else a user should know.
	notes []string
	// remedy is what a user can do.
	remedy string
}

// because returns a message that only has a cause.
func because(cause string) message { return message{causes: []string{cause}} }

// headline returns what runs, and what becomes of what is wanted; empty if the message does not say.
func (m message) headline() string { return clauses(m.runs, m.wanted) }

// said returns the message without its remedy.
func (m message) said() string {
	said, causes := m.headline(), clauses(m.causes...)
	if said != "" && causes != "" {
		said += ": "
	}

	return clauses(append([]string{said + causes}, m.notes...)...)
}

// text returns the whole message.
func (m message) text() string { return clauses(m.said(), m.remedy) }

// short returns the message without its causes.
func (m message) short() string { return cmp.Or(m.headline(), m.text()) }

// within returns the message in at most limit bytes. The causes are cut before the headline and the remedy.
func (m message) within(limit int) string {
	text, end := m.text(), ""
	if len(text) <= limit {
		return text
	}

	if m.remedy != "" {
		end = "; " + m.remedy
	}

	return object.OneLine(m.said(), limit-len(" …")-len(end)) + end
}

// clauses joins clauses, each of them once.
func clauses(all ...string) string {
	var said []string

	for _, clause := range all {
		if clause != "" && !slices.Contains(said, clause) {
			said = append(said, clause)
		}
	}

	return strings.Join(said, "; ")
}

// times says how often something has happened; empty for once.
func times(n int) string {
	switch {
	case n < 2:
		return ""
	case n == 2:
		return " twice"
	}

	return fmt.Sprintf(" %d times", n)
}
