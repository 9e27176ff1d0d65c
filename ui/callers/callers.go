// Package callers is the access to a status page that is served to many: each caller sees what its own permissions in
// the cluster allow.
//
// It keeps neither users nor sessions. A request has the caller's credentials for the API server: a bearer token, and
// the headers of an impersonation if a proxy sends its own token. The API server is asked with these credentials who
// that is and what it may read, so that it also decides who may impersonate whom. What is shown is read once for all
// callers with the operator's permissions, and then filtered for each of them.
package callers

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/ui"
)

const (
	// trusted is how long an answer of the API server about a caller is used, and so how long an expired token or a
	// removed permission may still be accepted.
	trusted = 30 * time.Second
	// shared is how long what was read for one caller may be shown to others.
	shared = 2 * time.Second

	// maxCallers, maxDecisions and maxReads limit what is remembered.
	maxCallers   = 1024
	maxDecisions = 16384
	maxReads     = 2048

	// maxStreams and maxPages are how many pages of one user can wait for updates, and how many can be rendered, at
	// the same time. maxUnknown is how many senders that are not known yet the API server is asked about for one
	// address: all share these requests.
	maxStreams = 32
	maxPages   = 4
	maxUnknown = 32
)

// Options are what an Access needs.
type Options struct {
	// Config connects to the API server. Its credentials are not used: callers are asked about with their own.
	Config *rest.Config
	Mapper meta.RESTMapper
	// Cache reads provider resources, and Facts everything else. Neither knows the callers.
	Cache client.Reader
	Facts *facts.Reader
}

// Access shows to each caller what it may read.
type Access struct {
	options   Options
	scheme    *runtime.Scheme // the types that are read
	reviewer  *reviewer
	callers   *memo[string] // names of users by their credentials
	decisions *memo[bool]
	objects   *memo[found]
	lists     *memo[client.ObjectList]
	records   *memo[*release.Record]

	mu   sync.Mutex
	open map[use]int
}

// use is what a user, or an address, can have several of at the same time.
type use struct {
	by   string
	kind useKind
}

type useKind int

const (
	streams useKind = iota
	pages
	unknown
)

// New returns an access. It sends no requests.
func New(options Options) (*Access, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(
		clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1alpha2.AddToScheme(scheme),
	); err != nil {
		return nil, err
	}

	reviewer, err := newReviewer(options.Config)
	if err != nil {
		return nil, err
	}

	return &Access{
		options:   options,
		scheme:    scheme,
		reviewer:  reviewer,
		callers:   newMemo[string](maxCallers, trusted),
		decisions: newMemo[bool](maxDecisions, trusted),
		objects:   newMemo[found](maxReads, shared),
		lists:     newMemo[client.ObjectList](maxReads, shared),
		records:   newMemo[*release.Record](maxReads, shared),
		open:      map[use]int{},
	}, nil
}

// Admit counts what a user has open. It refuses senders who are not users of the cluster, and users who have too much
// open already.
func (a *Access) Admit(r *http.Request, stream bool) (release func(), err error) {
	c, err := a.identify(r)
	if err != nil {
		return nil, err
	}

	if stream {
		return a.enter(use{owner(c.name), streams}, maxStreams)
	}

	return a.enter(use{owner(c.name), pages}, maxPages)
}

// owner returns what the pages of a user are counted for. Who may create one ServiceAccount may create many in its
// namespace, so these count as one user.
func owner(user string) string {
	const accounts = "system:serviceaccount:"

	account, isAccount := strings.CutPrefix(user, accounts)
	if !isAccount {
		return user
	}

	namespace, _, _ := strings.Cut(account, ":")

	return accounts + namespace
}

// enter counts a use until it ends. The error is a *ui.RefusedError if there are too many at the same time.
func (a *Access) enter(of use, most int) (leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.open[of] >= most {
		return nil, &ui.RefusedError{
			Code:    http.StatusTooManyRequests,
			Message: "Too many pages are open for you or your address. Close some of them, and try again in a few seconds.",
		}
	}

	a.open[of]++

	return func() { a.leave(of) }, nil
}

func (a *Access) leave(of use) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.open[of]--; a.open[of] == 0 {
		delete(a.open, of)
	}
}

// View returns what the sender of a request may see. Callers who may list no provider are refused.
func (a *Access) View(r *http.Request) (ui.View, error) {
	c, err := a.identify(r)
	if err != nil {
		return nil, err
	}

	v := a.newView(c)
	if err := v.checkAny(r.Context()); err != nil {
		return nil, err
	}

	return v, nil
}

// identify returns the sender of a request.
func (a *Access) identify(r *http.Request) (*caller, error) {
	credentials, err := readCredentials(r.Header)
	if err != nil {
		return nil, err
	}

	c := &caller{Access: a, credentials: credentials, key: credentials.key()}

	address, _, _ := net.SplitHostPort(r.RemoteAddr)

	c.name, err = a.callers.get(r.Context(), c.key, func(ctx context.Context) (string, error) {
		leave, err := a.enter(use{address, unknown}, maxUnknown)
		if err != nil {
			return "", err
		}
		defer leave()

		return a.reviewer.user(ctx, credentials)
	})

	return c, err
}
