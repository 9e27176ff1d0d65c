package release

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// listServer has Deployments 0 to objects-1, each with content of a size, and takes a second for each page.
type listServer struct {
	objects, size int
	err           error

	mu       sync.Mutex
	requests int
}

func (s *listServer) list(_ context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.requests++
	list := &unstructured.UnstructuredList{}
	first := 0

	if options.Continue != "" {
		_, _ = fmt.Sscan(options.Continue, &first)
	}

	for i := first; i < s.objects; i++ {
		if i == first+int(options.Limit) {
			list.SetContinue(fmt.Sprint(i))
			break
		}

		o := unstructured.Unstructured{Object: map[string]any{"content": strings.Repeat("x", s.size)}}
		o.SetGroupVersionKind(deployments)
		o.SetNamespace("a")
		o.SetName(fmt.Sprint(i))
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "capstan"}})
		list.Items = append(list.Items, o)
	}

	time.Sleep(time.Second)

	return list, s.err
}

func listedName(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "a", Name: fmt.Sprint(i)}
}

func TestListedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &listServer{objects: 600}
		objects := newListedObjects("")

		var takers sync.WaitGroup

		for i := range 600 {
			takers.Go(func() {
				found := objects.take(t.Context(), deployments, listedName(i), s.list)
				g.Expect(found).NotTo(BeNil())
				g.Expect(found.GetName()).To(Equal(fmt.Sprint(i)))
				g.Expect(found.GetManagedFields()).To(BeEmpty())
			})
		}

		takers.Wait()
		g.Expect(s.requests).To(Equal(3))
		g.Expect(objects.take(t.Context(), deployments, listedName(0), s.list)).To(BeNil(), "it has changed since")
		g.Expect(objects.take(t.Context(), deployments, listedName(600), s.list)).To(BeNil(), "it did not exist")
		g.Expect(s.requests).To(Equal(3))
		time.Sleep(time.Hour)
	})
}

func TestListedObjectsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &listServer{objects: 2}
		objects := newListedObjects("")

		g.Expect(objects.take(t.Context(), deployments, listedName(0), s.list)).NotTo(BeNil())
		time.Sleep(time.Minute)
		g.Expect(objects.take(t.Context(), deployments, listedName(1), s.list)).To(BeNil())
		g.Expect(s.requests).To(Equal(1))
	})
}

func TestListedObjectsThatMustNotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &listServer{objects: 2, err: errors.New("forbidden")}
		objects := newListedObjects("")

		for i := range 2 {
			g.Expect(objects.take(t.Context(), deployments, listedName(i), s.list)).To(BeNil())
		}

		g.Expect(s.requests).To(Equal(1))
		time.Sleep(time.Hour)
	})
}

func TestListedObjectsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &listServer{objects: 100, size: 1 << 20}
		objects := newListedObjects("")

		var kept []int

		for i := range s.objects {
			if objects.take(t.Context(), deployments, listedName(i), s.list) != nil {
				kept = append(kept, i)
			}
		}

		g.Expect(kept).To(HaveLen(15), "16 MiB")
		time.Sleep(time.Hour)
	})
}
