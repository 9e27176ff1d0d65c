package consistency_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/controllers/consistency"
)

var key = client.ObjectKey{Name: "a"}

// world is an API server, and a cache that is as old as the test wants.
type world struct {
	*consistency.Client

	server client.Client
	cached atomic.Pointer[corev1.Node] // nil if the cache does not have it
}

func newWorld(t *testing.T) *world {
	t.Helper()

	w := &world{}
	w.server = fake.NewClientBuilder().WithStatusSubresource(&corev1.Node{}).Build()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: key.Name}}
	NewWithT(t).Expect(w.server.Create(t.Context(), node)).To(Succeed())

	w.Client = consistency.NewClient(interceptor.NewClient(w.server.(client.WithWatch), interceptor.Funcs{Get: func(
		_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption,
	) error {
		cached := w.cached.Load()
		if cached == nil {
			return apierrors.NewNotFound(corev1.Resource("nodes"), key.Name)
		}

		cached.DeepCopyInto(o.(*corev1.Node))

		return nil
	}}), w.server)
	w.catchUp(t)

	return w
}

// catchUp brings the cache up to date.
func (w *world) catchUp(t *testing.T) {
	t.Helper()

	node := &corev1.Node{}
	NewWithT(t).Expect(w.server.Get(t.Context(), key, node)).To(Succeed())
	w.cached.Store(node)
}

// read returns what Read returns.
func (w *world) read(t *testing.T) *corev1.Node {
	t.Helper()

	node := &corev1.Node{}
	NewWithT(t).Expect(w.Read(t.Context(), key, node)).To(Succeed())

	return node
}

func TestReadsWaitForWrites(t *testing.T) {
	for name, write := range map[string]func(*world, *corev1.Node) error{
		"a patch": func(w *world, node *corev1.Node) error {
			before := node.DeepCopy()
			node.Spec.Unschedulable = true

			return w.Patch(t.Context(), node, client.MergeFrom(before))
		},
		"a patch of the status": func(w *world, node *corev1.Node) error {
			before := node.DeepCopy()
			node.Status.Phase = corev1.NodeRunning

			return w.Status().Patch(t.Context(), node, client.MergeFrom(before))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t)
			before := w.read(t)
			written := before.DeepCopy()
			g.Expect(write(w, written)).To(Succeed())

			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()

			g.Expect(w.Read(ctx, key, &corev1.Node{})).To(MatchError(ContainSubstring(
				"wait until the cache shows what was written to /a")))

			time.AfterFunc(50*time.Millisecond, func() { w.cached.Store(written) })
			g.Expect(w.read(t)).To(Equal(written))
		})
	}
}

func TestReadWhatOthersChanged(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	node := w.read(t)
	mark := func(c client.Client, value string) {
		before := node.DeepCopy()
		node.Labels = map[string]string{"label": value}
		g.Expect(c.Patch(t.Context(), node, client.MergeFrom(before))).To(Succeed())
	}

	mark(w, "patched")
	mark(w.server, "by another program")
	w.catchUp(t)

	g.Expect(w.read(t).Labels).To(HaveKeyWithValue("label", "by another program"))

	mark(w, "patched again")
	w.cached.Store(nil)

	g.Expect(apierrors.IsNotFound(w.Read(t.Context(), key, &corev1.Node{}))).To(BeTrue(), "it is gone")
}

func TestReadAfterRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		node := w.read(t)
		backup := node.DeepCopy()
		write := func() {
			before := node.DeepCopy()
			node.Spec.Unschedulable = !node.Spec.Unschedulable
			g.Expect(w.Patch(t.Context(), node, client.MergeFrom(before))).To(Succeed())
		}
		behind := MatchError(ContainSubstring("wait until the cache shows what was written to /a"))

		write()
		g.Expect(w.Read(t.Context(), key, &corev1.Node{})).To(behind)
		g.Expect(w.Read(t.Context(), key, &corev1.Node{})).To(behind, "the API server has it")

		// The fake server counts the versions of each object.
		g.Expect(w.server.Delete(t.Context(), node)).To(Succeed())

		backup.ResourceVersion = ""
		g.Expect(w.server.Create(t.Context(), backup)).To(Succeed())
		w.catchUp(t)

		g.Expect(w.Read(t.Context(), key, &corev1.Node{})).To(behind)
		g.Expect(w.read(t).Spec.Unschedulable).To(BeFalse())
	})
}
