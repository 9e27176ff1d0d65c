// Package seats limits how many of the operator's workers wait for servers that resources name: sources, and the API
// servers of kubeconfigs. A worker serves no other resource while it waits for a silent server.
package seats

import (
	"fmt"
	"sync"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// perNamespace is how many workers wait for servers that the resources of one namespace name.
const perNamespace = 3

// Seats are those in which a number of workers wait. They are safe for concurrent use; nil has room for all.
type Seats struct {
	all int

	mu    sync.Mutex
	taken map[string]int // by namespace
}

// New returns the seats of a number of workers: half of them may wait.
func New(workers int) *Seats { return &Seats{all: max(workers/2, 1), taken: map[string]int{}} }

// OfKinds returns the seats of each kind of provider resources, which has a number of workers.
func OfKinds(workers int) map[v1alpha2.ProviderType]*Seats {
	kinds := map[v1alpha2.ProviderType]*Seats{}
	for _, kind := range v1alpha2.ProviderTypes() {
		kinds[kind] = New(workers)
	}

	return kinds
}

// busy returns the problem of a server that is not asked yet, since as many others have not answered: those that
// resources in a namespace name, or any if that is empty. It is asked for later, whatever it is for.
func busy(asked int, namespace string) error {
	of := ""
	if namespace != "" {
		of = " in namespace " + namespace
	}

	return &problem.Error{
		Reason: v1alpha2.ProgressingReason, Outcome: problem.Retrying,
		Message: fmt.Sprintf("the operator asks %d other servers that resources of this kind%s name, and none has "+
			"answered yet", asked, of),
	}
}

// Take takes a seat for a resource in a namespace, until done is called. It does not wait: if there is none, it returns
// a *problem.Error.
func (s *Seats) Take(namespace string) (done func(), err error) {
	if s == nil {
		return func() {}, nil
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if asked := s.taken[namespace]; asked >= min(perNamespace, s.all) {
		return nil, busy(asked, namespace)
	}

	asked := 0
	for _, n := range s.taken {
		asked += n
	}

	if asked >= s.all {
		return nil, busy(asked, "")
	}

	s.taken[namespace]++

	return sync.OnceFunc(func() { s.leave(namespace) }), nil
}

// leave frees a seat.
func (s *Seats) leave(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.taken[namespace]--; s.taken[namespace] == 0 {
		delete(s.taken, namespace)
	}
}
