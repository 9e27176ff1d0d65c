package bulk_test

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

	"github.com/capstan-project/capstan/controllers/release/bulk"
)

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// server has Deployments 0 to objects-1, each with content of a size, and takes a second for each page.
type server struct {
	objects, size int
	err           error

	mu       sync.Mutex
	requests int
}

func (s *server) list(_ context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
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

func name(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "a", Name: fmt.Sprint(i)}
}

func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &server{objects: 600}
		objects := bulk.New("")

		var takers sync.WaitGroup

		for i := range 600 {
			takers.Go(func() {
				found := objects.Take(t.Context(), deployments, name(i), s.list)
				g.Expect(found).NotTo(BeNil())
				g.Expect(found.GetName()).To(Equal(fmt.Sprint(i)))
				g.Expect(found.GetManagedFields()).To(BeEmpty())
			})
		}

		takers.Wait()
		g.Expect(s.requests).To(Equal(3))
		g.Expect(objects.Take(t.Context(), deployments, name(0), s.list)).To(BeNil(), "it has changed since")
		g.Expect(objects.Take(t.Context(), deployments, name(600), s.list)).To(BeNil(), "it did not exist")
		g.Expect(s.requests).To(Equal(3))
		time.Sleep(time.Hour)
	})
}

func TestTakeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &server{objects: 2}
		objects := bulk.New("")

		g.Expect(objects.Take(t.Context(), deployments, name(0), s.list)).NotTo(BeNil())
		time.Sleep(time.Minute)
		g.Expect(objects.Take(t.Context(), deployments, name(1), s.list)).To(BeNil())
		g.Expect(s.requests).To(Equal(1))
	})
}

func TestTakeWhatMustNotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &server{objects: 2, err: errors.New("forbidden")}
		objects := bulk.New("")

		for i := range 2 {
			g.Expect(objects.Take(t.Context(), deployments, name(i), s.list)).To(BeNil())
		}

		g.Expect(s.requests).To(Equal(1))
		time.Sleep(time.Hour)
	})
}

func TestTakeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &server{objects: 100, size: 1 << 20}
		objects := bulk.New("")

		var kept []int

		for i := range s.objects {
			if objects.Take(t.Context(), deployments, name(i), s.list) != nil {
				kept = append(kept, i)
			}
		}

		g.Expect(kept).To(HaveLen(15), "16 MiB")
		time.Sleep(time.Hour)
	})
}
