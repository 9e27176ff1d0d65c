// Package ui serves the status page: read-only pages about the providers of a cluster, which update themselves.
//
// An Access decides who sees what, and a Feed reports what has changed. The pages themselves are in the package page.
package ui

import (
	"context"
	"net/http"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/ui/page"
)

// Access decides who sees what.
type Access interface {
	// View returns what the sender of a request may see. The error is a *RefusedError if that is nothing.
	View(r *http.Request) (View, error)
}

// Admission is an Access that limits what each sender of requests can use at the same time.
type Admission interface {
	// Admit is called before a page is rendered or a stream of updates begins, and release once that has ended. The
	// error is a *RefusedError if the sender may not see anything, or uses too much already.
	Admit(r *http.Request, stream bool) (release func(), err error)
}

// RefusedError reports that a request was refused.
type RefusedError struct {
	// Code is the status code, such as http.StatusForbidden.
	Code int
	// Message is for the sender of the request: the reason and the fix.
	Message string
}

func (e *RefusedError) Error() string { return e.Message }

// addHeaders adds what clients that are no browsers need to know to the headers of the response.
func (e *RefusedError) addHeaders(header http.Header) {
	switch e.Code {
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		header.Set("Retry-After", "30")
	}
}

// View is what a viewer may see of a cluster.
type View interface {
	// Providers lists the provider resources, in clusterctl's order of installation. They must not be changed.
	Providers(ctx context.Context) ([]v1alpha2.Provider, error)
	// Detailed returns all facts about a provider.
	Detailed(ctx context.Context, p v1alpha2.Provider) (facts.Provider, error)
	// History returns the revisions of a provider's release, oldest first.
	History(ctx context.Context, p v1alpha2.Provider) ([]facts.Revision, error)
	// Visible returns the parts of what was found of several providers that the viewer may see, in the same order.
	Visible(ctx context.Context, found []facts.Usage) ([]facts.Usage, error)
	// Compare compares two states of a provider's release.
	Compare(ctx context.Context, p v1alpha2.Provider, sides facts.Sides) (facts.Comparison, error)
}

// PersonalView is a View that is not the same for all viewers, which its pages mention.
type PersonalView interface {
	Viewer(ctx context.Context) (page.Viewer, error)
}

// Options configure a status page.
type Options struct {
	// Base is the path of the overview, which begins and ends with a slash.
	Base string
	// Cluster is the name of the cluster; it may be empty.
	Cluster string
	Access  Access
	Feed    *Feed
	// Offers are the versions that sources have; nil to show only those in the status of the resources.
	Offers *Offers
	// Usages are what keeps providers from being removed; nil to leave that out.
	Usages *Usages
	// Previews are what upgrades would change; nil to show only the command that prints that.
	Previews *Previews
}

// Limits of what viewers can use.
const (
	// maxStreams is how many pages can wait for updates at the same time.
	maxStreams = 128
	// maxRequests is how many pages are rendered at the same time, and maxWait how long a request waits for that.
	maxRequests = 8
	maxWait     = 10 * time.Second
	// maxQuery is the length of a query in bytes.
	maxQuery = 2048
	// readTimeout limits what is read from the cluster for one page.
	readTimeout = 20 * time.Second
	// responseTimeout limits the whole response to a request, except for streams.
	responseTimeout = maxWait + readTimeout + 10*time.Second
	// aliveInterval is the time between two signs of life for a page without updates.
	aliveInterval = 10 * time.Second
	// gatherTime is how long changes are gathered before pages are notified.
	gatherTime = 500 * time.Millisecond
)
