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
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

func TestSetFinalizerKeepsOthers(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	live, err := harness.NewClient(bedtest.StartAPIServer(t).Config())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(harness.InstallCRDs(ctx, live)).To(Succeed())

	r := &Reconciler{Dependencies: &Dependencies{Client: consistency.NewClient(live)}}
	key := client.ObjectKey{Namespace: "default", Name: "aws"}
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

	err = r.setFinalizer(ctx, stale, controllerutil.AddFinalizer)
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
		Client: consistency.NewClient(cached), Scope: scope,
	}}

	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result).To(BeZero())

	found := aws()
	g.Expect(cached.Get(t.Context(), client.ObjectKeyFromObject(p), found)).To(Succeed())
	g.Expect(found.Finalizers).To(BeEmpty())
	g.Expect(found.Status.Conditions).To(BeEmpty())
}
