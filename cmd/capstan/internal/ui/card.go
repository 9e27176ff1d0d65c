package ui

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
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

// Command returns a command line about the provider.
func (c Card) Command(args ...string) string { return command(c.Provider, args...) }

// Age returns how old the resource is.
func (c Card) Age() string { return c.frame.Age(c.Created.Time) }

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
