package apply

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

// Progress is what the attempts of a search have found. Its zero value has found nothing, and it serves one attempt at
// a time.
type Progress struct {
	mu       sync.Mutex // during an attempt
	listings []*listing
	// full is set once objects were left out.
	full bool
}

// listing is how far the list of a kind has come.
type listing struct {
	resource schema.GroupResource
	// next is the token of the next page; empty for the first one.
	next string
	// near are the objects of the cluster and of the release's namespace, and far those of other namespaces.
	near, far []object.Key
	// ended is when it was complete.
	ended time.Time
}

const (
	// maxFar is how many objects in other namespaces are kept. Anyone may create them there, with the release's marks, and
	// with those of a new revision they have to fit into an inventory.
	maxFar = v1alpha2.ObjectsMaxItems / 2
	// lastsFor is how long a list that is complete counts. Programs other than the operator may create objects meanwhile.
	lastsFor = time.Hour
)

// start forgets what was found if that is complete but for what was left out: it is not there any more.
func (p *Progress) start() {
	open := slices.ContainsFunc(p.listings, func(l *listing) bool { return l.ended.IsZero() })
	if p.full && !open {
		p.listings, p.full = nil, false
	}
}

// begin returns the list of a kind; nil if it is complete.
func (p *Progress) begin(resource schema.GroupResource, now time.Time) *listing {
	p.mu.Lock()
	defer p.mu.Unlock()

	at := slices.IndexFunc(p.listings, func(l *listing) bool { return l.resource == resource })
	if at < 0 {
		p.listings = append(p.listings, &listing{resource: resource})
		return p.listings[len(p.listings)-1]
	}

	found := p.listings[at]

	switch {
	case found.ended.IsZero():
	case now.Sub(found.ended) < lastsFor:
		return nil
	default:
		*found = listing{resource: resource}
	}

	return found
}

// restart makes a list begin again.
func (p *Progress) restart(l *listing) {
	p.mu.Lock()
	defer p.mu.Unlock()

	*l = listing{resource: l.resource}
}

// end notes that a list is complete.
func (p *Progress) end(l *listing, now time.Time) { l.next, l.ended = "", now }

// keep notes an object, unless there are too many.
func (p *Progress) keep(l *listing, key object.Key, namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	near, far := p.count()

	switch isNear := key.Namespace == "" || key.Namespace == namespace; {
	case isNear && near < v1alpha2.ObjectsMaxItems:
		l.near = append(l.near, key)
	case !isNear && far < maxFar:
		l.far = append(l.far, key)
	default:
		p.full = true
	}
}

func (p *Progress) count() (near, far int) {
	for _, l := range p.listings {
		near += len(l.near)
		far += len(l.far)
	}

	return near, far
}

// objects returns what was found, as far as an inventory can have it.
func (p *Progress) objects() []object.Key {
	var near, far []object.Key

	for _, l := range p.listings {
		near = append(near, l.near...)
		far = append(far, l.far...)
	}

	all := slices.Concat(near, far)

	return all[:min(len(all), v1alpha2.ObjectsMaxItems)]
}
