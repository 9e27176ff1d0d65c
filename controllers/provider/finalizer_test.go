package provider

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/watch"
)

func TestSetFinalizerKeepsOthers(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	live := connect(t)

	r := &Reconciler{Dependencies: &Dependencies{Client: consistency.NewClient(live, live)}}
	key := client.ObjectKey{Namespace: "default", Name: "kept"}
	g.Expect(live.Create(ctx, &v1alpha2.InfrastructureProvider{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
	})).To(Succeed())

	read := func() *v1alpha2.InfrastructureProvider {
		p := &v1alpha2.InfrastructureProvider{}
		g.Expect(live.Get(ctx, key, p)).To(Succeed())

		return p
	}

	stale, changed := read(), read()
	changed.Finalizers = []string{"example.com/other"}
	g.Expect(live.Update(ctx, changed)).To(Succeed())

	err := r.setFinalizer(ctx, stale, controllerutil.AddFinalizer)
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	g.Expect(r.setFinalizer(ctx, read(), controllerutil.AddFinalizer)).To(Succeed())
	g.Expect(read().Finalizers).To(ConsistOf("example.com/other", v1alpha2.Finalizer))

	stale, changed = read(), read()
	changed.Finalizers = append(changed.Finalizers, "example.com/third")
	g.Expect(live.Update(ctx, changed)).To(Succeed())

	err = r.setFinalizer(ctx, stale, controllerutil.RemoveFinalizer)
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	g.Expect(r.setFinalizer(ctx, read(), controllerutil.RemoveFinalizer)).To(Succeed())
	g.Expect(read().Finalizers).To(ConsistOf("example.com/other", "example.com/third"))
}

// TestOutOfScope: a resource that the operator does not reconcile is left alone, whatever has woken it.
func TestOutOfScope(t *testing.T) {
	g := NewWithT(t)
	p := aws()

	scope, err := watch.NewScope(nil, "team=a")
	g.Expect(err).NotTo(HaveOccurred())

	cached := clientWith(t, p)
	r := &Reconciler{Type: v1alpha2.InfrastructureProviderType, Dependencies: &Dependencies{
		Client: consistency.NewClient(cached, cached), Scope: scope,
	}}

	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result).To(BeZero())

	found := aws()
	g.Expect(cached.Get(t.Context(), client.ObjectKeyFromObject(p), found)).To(Succeed())
	g.Expect(found.Finalizers).To(BeEmpty())
	g.Expect(found.Status.Conditions).To(BeEmpty())
}

// TestNoteVersions: the version that a range was resolved to is noted until another one is known, also by a reconcile
// that does not get to a plan after the status was lost.
func TestNoteVersions(t *testing.T) {
	g := NewWithT(t)
	live := connect(t)

	for _, tt := range []struct{ what, noted, requested, desired, want string }{
		{"resolved", "", "~1.0", "v1.0.0", "v1.0.0"},
		{"resolved again", "v1.0.0", "~1.0", "v1.0.1", "v1.0.1"},
		{"not known yet", "v1.0.0", "~1.0", "", "v1.0.0"},
		{"never known", "", "~1.0", "", ""},
		{"exact", "v1.0.0", "v1.0.1", "v1.0.1", ""},
		{"exact, and not known yet", "v1.0.0", "v1.0.0", "", ""},
	} {
		p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-", Namespace: "default"}}
		p.Spec.Version = tt.requested

		if tt.noted != "" {
			p.Annotations = map[string]string{v1alpha2.ResolvedVersionAnnotation: tt.noted}
		}

		g.Expect(live.Create(t.Context(), p)).To(Succeed(), tt.what)

		r := newRun(&Reconciler{Dependencies: &Dependencies{Client: consistency.NewClient(live, live)}}, p)
		p.Status.DesiredVersion = tt.desired
		g.Expect(r.noteVersions(t.Context())).To(Succeed(), tt.what)

		g.Expect(live.Get(t.Context(), client.ObjectKeyFromObject(p), p)).To(Succeed(), tt.what)
		g.Expect(p.Annotations[v1alpha2.ResolvedVersionAnnotation]).To(Equal(tt.want), tt.what)
	}
}
