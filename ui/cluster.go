package ui

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/ui/page"
)

// Cluster is a Reader of a cluster.
type Cluster struct {
	*facts.Reader

	// Cache reads provider resources.
	Cache client.Reader
}

// Providers lists the provider resources.
func (c *Cluster) Providers(ctx context.Context) ([]v1alpha2.Provider, error) {
	var all []v1alpha2.Provider

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()
		if err := c.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %s resources: %w", t, err)
		}

		all = append(all, list.GetItems()...)
	}

	return all, nil
}

const (
	// checkInterval is the time between two requests that check whether the cluster still answers.
	checkInterval = 10 * time.Second
	// checkTimeout is how long the cluster may take to answer.
	checkTimeout = 5 * time.Second
)

// Check shows on the pages that the cluster does not answer, until the context ends. As long as a page is open, it
// lists a provider resource of the namespace, or if that is empty of the cluster, from time to time.
func (f *Feed) Check(ctx context.Context, uncached client.Reader, namespace string) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}

		if f.Watched() {
			f.SetStale(staleness(ctx, uncached, namespace))
		}
	}
}

// staleness returns why the facts may be outdated; empty if the cluster answers.
func staleness(ctx context.Context, uncached client.Reader, namespace string) string {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()

	cheap := []client.ListOption{client.InNamespace(namespace), client.Limit(1)}
	if err := uncached.List(ctx, &v1alpha2.CoreProviderList{}, cheap...); err != nil {
		return "The cluster does not answer, so what you see may be outdated: " + err.Error()
	}

	return ""
}

// Watch makes a feed report changes of provider resources.
func Watch(ctx context.Context, informers crcache.Informers, feed *Feed) error {
	changed := func(o any) {
		if deleted, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = deleted.Obj
		}

		if p, ok := o.(v1alpha2.Provider); ok {
			feed.Changed(page.ID(string(p.ProviderType()), p.GetNamespace(), p.GetName()))
		}
	}

	for _, t := range v1alpha2.ProviderTypes() {
		informer, err := informers.GetInformer(ctx, t.New())
		if err != nil {
			return fmt.Errorf("watch %s resources: %w", t, err)
		}

		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    changed,
			UpdateFunc: func(_, o any) { changed(o) },
			DeleteFunc: changed,
		}); err != nil {
			return fmt.Errorf("watch %s resources: %w", t, err)
		}
	}

	return nil
}
