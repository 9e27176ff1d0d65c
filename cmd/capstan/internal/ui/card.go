package ui

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/object"
)

// Card is a provider with what pages conclude from it.
type Card struct {
	view.Provider
	frame Frame
}

// Target returns the version that is wanted.
func (c Card) Target() string { return cmp.Or(c.Chosen, c.Wanted) }

// ID is that of the provider's element.
func (c Card) ID() string { return strings.Join([]string{c.Kind, c.Namespace, c.Name}, "/") }

// Path returns that of the provider's page.
func (c Card) Path() string {
	return c.frame.Base + "providers/" +
		url.PathEscape(c.Kind) + "/" + url.PathEscape(c.Namespace) + "/" + url.PathEscape(c.Name)
}

// ComparePath returns the path of the comparison of two revisions; 0 is the cluster or the newest revision.
func (c Card) ComparePath(from, to int) string {
	query := url.Values{}
	if from != 0 {
		query.Set("from", strconv.Itoa(from))
	}

	if to != 0 {
		query.Set("to", strconv.Itoa(to))
	}

	path := c.Path() + "/compare"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}

	return path
}

// Command returns a command line of capstan about the provider, to be copied into a shell.
func (c Card) Command(args ...string) string {
	words := slices.Concat([]string{"capstan"}, args, []string{c.Label, "-n", c.Namespace})
	for i, word := range words {
		words[i] = view.Quote(object.Printable(word))
	}

	return strings.Join(words, " ")
}

// Modes returns the parts of the spec that keep the operator from its usual work.
func (c Card) Modes() []string {
	var found []string

	if c.Suspended {
		found = append(found, "suspended")
	}

	if c.Paused {
		found = append(found, "paused")
	}

	if c.RollbackTo != nil {
		found = append(found, "held at revision "+strconv.Itoa(*c.RollbackTo))
	}

	if c.Remote {
		found = append(found, "in another cluster")
	}

	return found
}

// shorten cuts a text that is longer than a number of bytes.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}

	return strings.ToValidUTF8(text[:limit], "") + " …"
}
