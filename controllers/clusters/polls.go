package clusters

import (
	"context"
	"errors"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/paging"
)

const (
	// pollAge is how long a list is shared. Reconciles of one cluster come at the same time, see Target.NextPoll.
	pollAge = 2 * time.Second
	// pollPage is how many objects are listed at a time, definitionsPolled how many CRDs, which are large, and maxPolled
	// how many in all.
	pollPage, definitionsPolled, maxPolled = 100, 5, 2000
)

// errTooMany means that there are too many objects to list them all.
var errTooMany = errors.New("there are too many objects to list them all")

// polls are lists of the objects that belong to providers of a remote cluster, and of its CRDs without their schemas.
// All reconciles that need one within a moment share it, unless the operator has changed something in the cluster
// meanwhile.
type polls struct {
	// reader has the permissions of the kubeconfig.
	reader client.Reader

	mu    sync.Mutex
	lists map[pollKey]*poll
}

// pollKey is what is listed: objects of a kind, completely or only their metadata.
type pollKey struct {
	kind     schema.GroupVersionKind
	metadata bool
}

// poll is a list that is being read, until done is closed.
type poll struct {
	done    chan struct{}
	objects map[client.ObjectKey]client.Object
	err     error
}

func newPolls(reader client.Reader) *polls { return &polls{reader: reader, lists: map[pollKey]*poll{}} }

// expire makes everything be listed again.
func (p *polls) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()

	clear(p.lists)
}

// list returns the objects of a kind.
func (p *polls) list(ctx context.Context, key pollKey) (map[client.ObjectKey]client.Object, error) {
	for {
		found, mine := p.find(key)
		if mine {
			found.objects, found.err = p.read(ctx, key)
			p.keep(key, found)
			close(found.done)

			return found.objects, found.err
		}

		select {
		case <-found.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}

		// A reconcile that has ended does not end the others.
		if !errors.Is(found.err, context.Canceled) && !errors.Is(found.err, context.DeadlineExceeded) {
			return found.objects, found.err
		}
	}
}

// find returns the list of a kind, which the caller must read if mine is true.
func (p *polls) find(key pollKey) (found *poll, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if found = p.lists[key]; found != nil {
		return found, false
	}

	found = &poll{done: make(chan struct{})}
	p.lists[key] = found

	return found, true
}

// keep keeps a list for a moment. Errors are not shared, except that a kind must not be listed.
func (p *polls) keep(key pollKey, list *poll) {
	remove := func() {
		p.mu.Lock()
		defer p.mu.Unlock()

		if p.lists[key] == list {
			delete(p.lists, key)
		}
	}

	if list.err != nil && !apierrors.IsForbidden(list.err) {
		remove()
		return
	}

	time.AfterFunc(pollAge, remove)
}

// read lists the objects of a kind, in pages. A kind that the API server does not serve has none.
func (p *polls) read(ctx context.Context, key pollKey) (map[client.ObjectKey]client.Object, error) {
	objects := map[client.ObjectKey]client.Object{}
	add := func(item runtime.Object) error {
		if definition, ok := item.(*apiextensionsv1.CustomResourceDefinition); ok {
			if _, err := crds.StripSchemas(definition); err != nil {
				return err
			}
		}

		o := item.(client.Object) //nolint:forcetypeassert // all objects of these lists are
		o.GetObjectKind().SetGroupVersionKind(key.kind)
		objects[client.ObjectKeyFromObject(o)] = o

		return nil
	}

	for page, err := range paging.Pages(ctx, metav1.ListOptions{Limit: key.limit()}, p.page(key)) {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return objects, nil
		}

		if err != nil {
			return nil, err
		}

		if err := meta.EachListItem(page, add); err != nil {
			return nil, err
		}

		if len(objects) >= maxPolled && page.GetContinue() != "" {
			return nil, errTooMany
		}
	}

	return objects, nil
}

// page returns what reads one page of a list.
func (p *polls) page(key pollKey) paging.ListFunc[client.ObjectList] {
	return func(ctx context.Context, options metav1.ListOptions) (client.ObjectList, error) {
		page := key.newList()

		return page, p.reader.List(ctx, page, &client.ListOptions{
			LabelSelector: key.selector(), Limit: options.Limit, Continue: options.Continue,
		})
	}
}

// selector selects what is listed; nil for everything. Labels cannot select the CRDs of a provider, because some may
// have been applied before by something else.
func (k pollKey) selector() labels.Selector {
	if k.kind == definitionKind {
		return nil
	}

	return providerObjects()
}

// limit is how many objects a page has.
func (k pollKey) limit() int64 {
	if k.kind == definitionKind {
		return definitionsPolled
	}

	return pollPage
}

// newList returns an empty list.
func (k pollKey) newList() client.ObjectList {
	if k.kind == definitionKind {
		return &apiextensionsv1.CustomResourceDefinitionList{}
	}

	listKind := k.kind
	listKind.Kind += "List"

	if k.metadata {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(listKind)

		return list
	}

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listKind)

	return list
}

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// polledReader reads single objects and CRDs from polls. What must not be listed it reads as an account.
type polledReader struct {
	polls   *polls
	account client.Reader
}

// Get reads an object that has the label of a provider, or a CRD without its schemas.
func (r *polledReader) Get(
	ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption,
) error {
	listed := pollKey{kind: into.GetObjectKind().GroupVersionKind()}

	switch into.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		listed.kind = definitionKind
	case *metav1.PartialObjectMetadata:
		listed.metadata = true
	}

	objects, err := r.polls.list(ctx, listed)
	if apierrors.IsForbidden(err) || errors.Is(err, errTooMany) {
		return r.account.Get(ctx, key, into, options...)
	}

	if err != nil {
		return err
	}

	found := objects[key]
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: listed.kind.Group, Resource: listed.kind.Kind}, key.Name)
	}

	switch into := into.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		found.(*apiextensionsv1.CustomResourceDefinition).DeepCopyInto(into)
	case *metav1.PartialObjectMetadata:
		found.(*metav1.PartialObjectMetadata).DeepCopyInto(into)
	case *unstructured.Unstructured:
		found.(*unstructured.Unstructured).DeepCopyInto(into)
	}

	return nil
}

// List reads CRDs without their schemas.
func (r *polledReader) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	list, ok := into.(*apiextensionsv1.CustomResourceDefinitionList)
	if !ok {
		return r.account.List(ctx, into, options...)
	}

	selected := client.ListOptions{LabelSelector: labels.Everything()}
	selected.ApplyOptions(options)

	objects, err := r.polls.list(ctx, pollKey{kind: definitionKind})
	if apierrors.IsForbidden(err) || errors.Is(err, errTooMany) {
		return r.account.List(ctx, into, options...)
	}

	for _, o := range objects {
		if selected.LabelSelector.Matches(labels.Set(o.GetLabels())) {
			list.Items = append(list.Items, *o.(*apiextensionsv1.CustomResourceDefinition))
		}
	}

	return err
}
