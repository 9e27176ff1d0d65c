package provider

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fluxconditions "github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// server is an API server with one resource.
type server struct {
	client.Client
	// writes counts the patches of the status, which fail with failure unless that is nil.
	writes  int
	failure error
}

func newServer(t *testing.T, status v1alpha2.ProviderStatus) (*server, v1alpha2.Provider) {
	t.Helper()

	scheme := runtime.NewScheme()
	NewWithT(t).Expect(v1alpha2.AddToScheme(scheme)).To(Succeed())

	p := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "cluster-api", Generation: 2}}
	p.Status = status
	s := &server{}
	patch := func(
		ctx context.Context, c client.Client, _ string, o client.Object, patch client.Patch,
		options ...client.SubResourcePatchOption,
	) error {
		s.writes++

		if s.failure != nil {
			return s.failure
		}

		return c.Status().Patch(ctx, o, patch, options...)
	}
	s.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(p).WithStatusSubresource(p).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: patch}).Build()

	return s, s.read(t)
}

func (s *server) read(t *testing.T) v1alpha2.Provider {
	t.Helper()

	p := &v1alpha2.CoreProvider{}
	NewWithT(t).Expect(s.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "cluster-api"}, p)).To(Succeed())

	return p
}

// finish does what the end of a reconcile does.
func finish(t *testing.T, w *statusWriter, p v1alpha2.Provider) {
	t.Helper()

	fluxconditions.MarkTrue(p, v1alpha2.ReadyCondition, v1alpha2.HealthyReason, "all is well")
	p.GetStatus().ObservedGeneration = p.GetGeneration()
	NewWithT(t).Expect(w.save(t.Context(), p)).To(Succeed())
}

// messages returns the messages of the conditions on the server, by type.
func (s *server) messages(t *testing.T) map[string]string {
	t.Helper()

	messages := map[string]string{}
	for _, c := range s.read(t).GetConditions() {
		messages[c.Type] = c.Message
	}

	return messages
}

// TestNotice: only a resource whose spec has changed says that its source is asked, and nothing of that stays. What
// runs is ready meanwhile, unless it is not usable.
func TestNotice(t *testing.T) {
	const asking = "Getting the provider from its source"

	ready := metav1.Condition{
		Type: v1alpha2.ReadyCondition, Status: metav1.ConditionTrue, Reason: v1alpha2.HealthyReason, Message: "runs",
	}
	asks := func(ctx context.Context, w *statusWriter, p v1alpha2.Provider) { w.asks(ctx, p) }

	for name, c := range map[string]struct {
		observed int64
		before   []metav1.Condition
		notice   func(context.Context, *statusWriter, v1alpha2.Provider)
		want     map[string]string
	}{
		"a new resource": {-1, nil, asks, map[string]string{
			v1alpha2.ReadyCondition: asking, v1alpha2.ReconcilingCondition: asking,
		}},
		"a changed spec": {1, []metav1.Condition{ready}, asks, map[string]string{
			v1alpha2.ReadyCondition: "runs", v1alpha2.ReconcilingCondition: asking,
		}},
		"an unchanged spec": {2, []metav1.Condition{ready}, asks, map[string]string{v1alpha2.ReadyCondition: "runs"}},
		"a provider that is not usable": {2, []metav1.Condition{ready},
			func(ctx context.Context, w *statusWriter, p v1alpha2.Provider) { w.notice(ctx, p, "waiting", false) },
			map[string]string{v1alpha2.ReadyCondition: "waiting", v1alpha2.ReconcilingCondition: "waiting"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, p := newServer(t, v1alpha2.ProviderStatus{ObservedGeneration: c.observed, Conditions: c.before})
			w := newStatusWriter(s, s, p)
			before := p.GetStatus().DeepCopy()

			c.notice(t.Context(), w, p)
			g.Expect(s.messages(t)).To(Equal(c.want))
			g.Expect(s.read(t).GetStatus().ObservedGeneration).To(Equal(c.observed), "the spec is not handled yet")
			g.Expect(p.GetStatus()).To(Equal(before))

			finish(t, w, p)
			g.Expect(s.messages(t)).To(Equal(map[string]string{v1alpha2.ReadyCondition: "all is well"}))
		})
	}
}

func TestFailureToReportIsNoFailure(t *testing.T) {
	s, p := newServer(t, v1alpha2.ProviderStatus{ObservedGeneration: -1})
	w := newStatusWriter(s, s, p)

	s.failure = errors.New("it did not answer")

	w.asks(t.Context(), p)

	s.failure = nil

	finish(t, w, p)
	NewWithT(t).Expect(s.messages(t)).To(Equal(map[string]string{v1alpha2.ReadyCondition: "all is well"}))
}

// TestWriteAfterNotice checks that a notice is no conflict for a write of the resource that follows, and that a change
// of the spec still is.
func TestWriteAfterNotice(t *testing.T) {
	for name, changed := range map[string]bool{"same spec": false, "changed spec": true} {
		t.Run(name, func(t *testing.T) {
			s, p := newServer(t, v1alpha2.ProviderStatus{ObservedGeneration: -1})
			w := newStatusWriter(s, s, p)

			if changed {
				other := s.read(t)
				other.SetGeneration(3)
				NewWithT(t).Expect(s.Update(t.Context(), other)).To(Succeed())
			}

			w.asks(t.Context(), p)

			p.GetSpec().Version = "v1.0.0"
			err := s.Update(t.Context(), p)
			NewWithT(t).Expect(apierrors.IsConflict(err)).To(Equal(changed), "%v", err)
		})
	}
}

// TestOutcomeIsWritten checks that what has happened is written although the time for the work is over, and that
// nothing begins once the operator stops.
func TestOutcomeIsWritten(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()

	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()

	for name, c := range map[string]struct {
		ctx    context.Context
		begins bool
	}{
		"in time":              {t.Context(), true},
		"too late":             {expired, true},
		"the operator stopped": {canceled, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, p := newServer(t, v1alpha2.ProviderStatus{})
			s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{SubResourcePatch: func(
				ctx context.Context, c client.Client, _ string, o client.Object, patch client.Patch,
				options ...client.SubResourcePatchOption,
			) error {
				if ctx.Err() != nil {
					return ctx.Err()
				}

				return c.Status().Patch(ctx, o, patch, options...)
			}})

			r := newRun(&Reconciler{Dependencies: &Dependencies{}}, p)
			r.status = newStatusWriter(s, s, p)
			begun := revision(1, v1alpha2.RevisionPendingInstall, wanted)
			g.Expect(r.announce(c.ctx, begun, nil) == nil).To(Equal(c.begins))
			g.Expect(s.read(t).GetStatus().History).To(HaveLen(map[bool]int{true: 1}[c.begins]))

			failed := revision(1, v1alpha2.RevisionFailed, wanted)
			g.Expect(r.announce(c.ctx, failed, nil)).To(Succeed())
			g.Expect(s.read(t).GetStatus().History).To(ContainElement(HaveField("Status", v1alpha2.RevisionFailed)))

			p.GetStatus().ObservedGeneration = p.GetGeneration()
			g.Expect(r.status.save(c.ctx, p)).To(Succeed())
			g.Expect(s.read(t).GetStatus().ObservedGeneration).To(Equal(p.GetGeneration()))
		})
	}
}

// TestLock checks that a status which another process has written is not overwritten, whatever else of the resource has
// changed.
func TestLock(t *testing.T) {
	change := func(s *v1alpha2.ProviderStatus) { s.DesiredVersion = "v1.0.0" }
	record := func(t *testing.T, w *statusWriter) error {
		t.Helper()

		return w.record(t.Context(), change)
	}

	t.Run("metadata", func(t *testing.T) {
		g := NewWithT(t)
		s, p := newServer(t, v1alpha2.ProviderStatus{
			Conditions: []metav1.Condition{{Type: v1alpha2.ReadyCondition, LastTransitionTime: metav1.Now().Rfc3339Copy()}},
		})
		w := newStatusWriter(s, s, p)

		other := s.read(t)
		other.SetAnnotations(map[string]string{"a": "b"})
		g.Expect(s.Update(t.Context(), other)).To(Succeed())

		g.Expect(record(t, w)).To(Succeed())
		finish(t, w, p)
		g.Expect(s.read(t).GetAnnotations()).To(HaveKey("a"))
		g.Expect(s.messages(t)).To(HaveKeyWithValue(v1alpha2.ReadyCondition, "all is well"))
	})

	t.Run("status", func(t *testing.T) {
		g := NewWithT(t)
		s, p := newServer(t, v1alpha2.ProviderStatus{})
		w := newStatusWriter(s, s, p)

		other := s.read(t)
		other.GetStatus().DesiredVersion = "v2.0.0"
		g.Expect(s.Status().Update(t.Context(), other)).To(Succeed())

		g.Expect(apierrors.IsConflict(record(t, w))).To(BeTrue())

		change(p.GetStatus())
		g.Expect(apierrors.IsConflict(w.save(t.Context(), p))).To(BeTrue())
		g.Expect(s.read(t).GetStatus().DesiredVersion).To(Equal("v2.0.0"))
	})
}
