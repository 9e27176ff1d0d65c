package fresh_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/controllers/fresh"
)

var key = client.ObjectKey{Name: "a"}

// world is an API server, and a cache that is as old as the test wants.
type world struct {
	*fresh.Client

	server client.Client
	cached *corev1.Node // nil if the cache does not have it
	reads  int          // of single resources from the server
	fail   error        // of the next patch, after it was made
}

func newWorld(t *testing.T) *world {
	t.Helper()

	w := &world{}
	w.server = fake.NewClientBuilder().WithStatusSubresource(&corev1.Node{}).Build()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: key.Name}}
	NewWithT(t).Expect(w.server.Create(t.Context(), node)).To(Succeed())

	cached := interceptor.NewClient(w.server.(client.WithWatch), interceptor.Funcs{
		Get: func(
			_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption,
		) error {
			if w.cached == nil {
				return apierrors.NewNotFound(corev1.Resource("nodes"), key.Name)
			}

			w.cached.DeepCopyInto(o.(*corev1.Node))

			return nil
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if w.cached != nil {
				list.(*corev1.NodeList).Items = []corev1.Node{*w.cached.DeepCopy()}
			}

			return nil
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption,
		) error {
			return errors.Join(c.Patch(ctx, o, patch, options...), w.fail)
		},
	})
	live := interceptor.NewClient(w.server.(client.WithWatch), interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption,
		) error {
			w.reads++
			return c.Get(ctx, key, o, options...)
		},
	})
	w.Client = fresh.NewClient(cached, live)

	return w
}

// catchUp brings the cache up to date.
func (w *world) catchUp(t *testing.T) {
	t.Helper()

	w.cached = &corev1.Node{}
	NewWithT(t).Expect(w.server.Get(t.Context(), key, w.cached)).To(Succeed())
}

// read returns what Read returns, and whether that has asked the server.
func (w *world) read(t *testing.T) (node *corev1.Node, asked bool) {
	t.Helper()

	before := w.reads
	node = &corev1.Node{}
	NewWithT(t).Expect(w.Read(t.Context(), key, node)).To(Succeed())

	return node, w.reads > before
}

// label changes a label of the resource with a client.
func label(t *testing.T, c client.Client, node *corev1.Node, value string) error {
	t.Helper()

	before := node.DeepCopy()
	node.Labels = map[string]string{"label": value}

	return c.Patch(t.Context(), node, client.MergeFrom(before))
}

func TestRead(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	w.catchUp(t)

	node, asked := w.read(t)
	g.Expect(asked).To(BeFalse())

	g.Expect(label(t, w, node, "patched")).To(Succeed())
	node, asked = w.read(t)
	g.Expect(asked).To(BeTrue(), "the cache does not have the patch yet")
	g.Expect(node.Labels).To(HaveKeyWithValue("label", "patched"))

	w.catchUp(t)

	node, asked = w.read(t)
	g.Expect(asked).To(BeFalse())
	g.Expect(node.Labels).To(HaveKeyWithValue("label", "patched"))
}

func TestReadAfterPatchOfStatus(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	w.catchUp(t)

	node, _ := w.read(t)
	before := node.DeepCopy()
	node.Status.Phase = corev1.NodeRunning
	g.Expect(w.Status().Patch(t.Context(), node, client.MergeFrom(before))).To(Succeed())

	node, asked := w.read(t)
	g.Expect(asked).To(BeTrue())
	g.Expect(node.Status.Phase).To(Equal(corev1.NodeRunning))
}

func TestReadWhatOthersChanged(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	w.catchUp(t)
	node, _ := w.read(t)

	g.Expect(label(t, w, node, "patched")).To(Succeed())
	g.Expect(label(t, w.server, node, "by another program")).To(Succeed())
	w.catchUp(t)

	seen, asked := w.read(t)
	g.Expect(asked).To(BeFalse(), "the cache is newer than what was written")
	g.Expect(seen.Labels).To(HaveKeyWithValue("label", "by another program"))
}

func TestReadAfterAnUnknownResult(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	w.catchUp(t)
	node, _ := w.read(t)

	w.fail = errors.New("connection lost")
	g.Expect(label(t, w, node, "patched")).To(MatchError(w.fail))

	node, asked := w.read(t)
	g.Expect(asked).To(BeTrue())
	g.Expect(node.Labels).To(HaveKeyWithValue("label", "patched"))
}

func TestReadWhatIsGone(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	w.catchUp(t)
	node, _ := w.read(t)
	g.Expect(label(t, w, node, "patched")).To(Succeed())
	g.Expect(w.server.Delete(t.Context(), node)).To(Succeed())

	err := w.Read(t.Context(), key, &corev1.Node{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)

	w.cached = nil
	err = w.Read(t.Context(), key, &corev1.Node{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	g.Expect(w.reads).To(Equal(1))
}

func TestReadLeavesNothingOfTheCache(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	w.catchUp(t)
	node, _ := w.read(t)
	g.Expect(label(t, w, node, "old")).To(Succeed())
	w.catchUp(t)

	before := node.DeepCopy()
	node.Labels = nil
	g.Expect(w.Patch(t.Context(), node, client.MergeFrom(before))).To(Succeed())

	node, _ = w.read(t)
	g.Expect(node.Labels).To(BeEmpty())
}
