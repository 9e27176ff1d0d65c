package provider

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/fresh"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// TestOneResourceBegins has resources that all install the same provider at the same time, with a cache that shows
// late what they write.
func TestOneResourceBegins(t *testing.T) {
	const resources = 8

	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha2.AddToScheme(scheme)).To(Succeed())

	name := func(o client.Object) []string { return []string{o.GetName()} }
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha2.InfrastructureProvider{}).
		WithIndex(&v1alpha2.InfrastructureProvider{}, preflight.NameField, name)

	for i := range resources {
		p := &v1alpha2.InfrastructureProvider{}
		p.Namespace, p.Name, p.UID = fmt.Sprintf("team-%d", i), "aws", types.UID(fmt.Sprint(i))
		builder.WithObjects(p)
	}

	server := builder.Build()

	var before v1alpha2.InfrastructureProviderList

	g.Expect(server.List(t.Context(), &before)).To(Succeed())

	cache := laggingClient(t, server)
	shared := &Reconciler{Type: v1alpha2.InfrastructureProviderType, Dependencies: &Dependencies{
		Client: fresh.NewClient(cache), Clusters: &clusters.Pool{Local: &clusters.Cluster{}},
	}}

	var (
		all     sync.WaitGroup
		results [resources]Result
	)

	for i := range resources {
		all.Go(func() {
			p := before.Items[i].DeepCopy()
			r := newRun(shared, p)
			r.change.plan.Version = "v1.0.0"
			r.status = newStatusWriter(shared.Client, shared.Client, p)
			results[i] = r.announceChange(t.Context())
		})
	}

	all.Wait()

	begun := 0

	for _, result := range results {
		if !result.Ends() {
			begun++
			continue
		}

		g.Expect(result.Reason).To(Equal(v1alpha2.MoreThanOneProviderInstanceExistsReason))
	}

	g.Expect(begun).To(Equal(1))
}

// laggingClient returns a client that shows what was written some time later. Two that list at the same time meet, so
// that none is done before the other begins.
func laggingClient(t *testing.T, server client.WithWatch) client.Client {
	var shown atomic.Pointer[v1alpha2.InfrastructureProviderList]

	refresh := func() {
		now := &v1alpha2.InfrastructureProviderList{}
		if server.List(t.Context(), now) == nil {
			shown.Store(now)
		}
	}
	refresh()

	go func() {
		for t.Context().Err() == nil {
			time.Sleep(50 * time.Millisecond)
			refresh()
		}
	}()

	meet := make(chan struct{})

	return interceptor.NewClient(server, interceptor.Funcs{
		Get: func(
			_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption,
		) error {
			for _, p := range shown.Load().Items {
				if client.ObjectKeyFromObject(&p) == key {
					p.DeepCopyInto(o.(*v1alpha2.InfrastructureProvider))
				}
			}

			return nil
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			select {
			case meet <- struct{}{}:
			case <-meet:
			case <-time.After(20 * time.Millisecond):
			}

			shown.Load().DeepCopyInto(list.(*v1alpha2.InfrastructureProviderList))

			return nil
		},
	})
}
