package watch

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
)

func TestStandingChanged(t *testing.T) {
	contract, deleted := "v1beta2", metav1.Now()

	for what, c := range map[string]struct {
		change func(core *v1alpha2.CoreProvider)
		// woken are resources that wait for something, ends those that wait for core.
		woken, ends bool
	}{
		"ready": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkTrue(core, v1alpha2.ReadyCondition, v1alpha2.HealthyReason, "it runs")
		}, true, true},
		"installed": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkTrue(core, v1alpha2.ProviderInstalledCondition, v1alpha2.ProviderInstalledReason, "applied")
		}, false, false},
		"no release": {func(core *v1alpha2.CoreProvider) { core.Status.Release = nil }, true, true},
		"paused": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkTrue(core, v1alpha2.PausedCondition, v1alpha2.PausedReason, "no replicas")
		}, true, false},
		"another contract": {func(core *v1alpha2.CoreProvider) { core.Status.Contract = &contract }, true, false},
		"another spec":     {func(core *v1alpha2.CoreProvider) { core.Generation++ }, true, true},
		"being deleted":    {func(core *v1alpha2.CoreProvider) { core.DeletionTimestamp = &deleted }, true, true},
		"its change failed": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkFalse(core, v1alpha2.ProviderUpgradedCondition, v1alpha2.ComponentsUpgradeErrorReason, "")
		}, true, true},
		"its change was rolled back": {func(core *v1alpha2.CoreProvider) {
			core.Status.History = []v1alpha2.ReleaseRevision{{Version: "v1.0.0", Status: "deployed"}}
		}, true, true},
		"its change failed, and stays": {func(core *v1alpha2.CoreProvider) {
			core.Status.History[0].Status = "failed"
		}, false, false},
		"waits for core": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkFalse(core, v1alpha2.PreflightCheckCondition, v1alpha2.WaitingForCoreProviderReadyReason, "")
		}, true, false},
		"progress": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkReconciling(core, v1alpha2.ProgressingReason, "1 of 2")
		}, false, false},
		"available upgrades": {func(core *v1alpha2.CoreProvider) {
			core.Status.AvailableUpgrades = make([]v1alpha2.AvailableUpgrade, 1)
		}, false, false},
		"a label": {func(core *v1alpha2.CoreProvider) { core.Labels = map[string]string{"team": "a"} }, false, false},
	} {
		t.Run(what, func(t *testing.T) {
			before := &v1alpha2.CoreProvider{}
			before.Spec.Version = "v1.1.0"
			before.Status.Release = &v1alpha2.ReleaseStatus{}
			before.Status.InstalledVersion = new("v1.0.0")
			before.Status.History = []v1alpha2.ReleaseRevision{{Version: "v1.1.0", Status: "deployed"}}

			now := before.DeepCopy()
			c.change(now)

			g := NewWithT(t)
			g.Expect(standingChanged(before, now)).To(Equal(c.woken))
			g.Expect(endsWait(before, now)).To(Equal(c.ends))
		})
	}
}

// TestProvidersThatWaitAreWoken checks which changes of one provider wake another one that waits.
func TestProvidersThatWaitAreWoken(t *testing.T) {
	const (
		core           = v1alpha2.CoreProviderType
		bootstrap      = v1alpha2.ProviderType("BootstrapProvider")
		infrastructure = v1alpha2.ProviderType("InfrastructureProvider")
	)

	upgraded := func(p v1alpha2.Provider) { p.GetStatus().Contract = new("v1beta2") }
	ready := func(p v1alpha2.Provider) {
		conditions.MarkTrue(p, v1alpha2.ReadyCondition, v1alpha2.HealthyReason, "it runs")
	}
	installed := func(p v1alpha2.Provider) { p.GetStatus().Release = &v1alpha2.ReleaseStatus{} }

	aws := waiting(infrastructure, "aws")
	behind := waiting(infrastructure, "behind")
	conditions.MarkFalse(behind, v1alpha2.PreflightCheckCondition, v1alpha2.WaitingForCoreProviderReadyReason, "core")

	dependent := waiting(infrastructure, "dependent")
	dependent.GetSpec().DependsOn = []string{"infrastructure-gcp"}

	for what, c := range map[string]struct {
		waiting v1alpha2.Provider
		other   v1alpha2.Provider
		change  func(v1alpha2.Provider) // nil deletes it
		woken   bool
	}{
		"core became ready":                  {aws, v1beta1(core, "cluster-api"), ready, true},
		"core is being installed":            {aws, waiting(core, "cluster-api"), installed, true},
		"… which another one waits for":      {behind, waiting(core, "cluster-api"), installed, false},
		"core is ready, which it waits for":  {behind, v1beta1(core, "cluster-api"), ready, true},
		"… or gone":                          {behind, v1beta1(core, "cluster-api"), nil, true},
		"core was deleted":                   {aws, v1beta1(core, "cluster-api"), nil, true},
		"another kind's contract changed":    {aws, v1beta1(bootstrap, "kubeadm"), upgraded, true},
		"the contract of its kind changed":   {aws, v1beta1(infrastructure, "gcp"), upgraded, true},
		"the old contract was deleted":       {aws, v1beta1(infrastructure, "gcp"), nil, true},
		"another provider became ready":      {aws, v1beta1(infrastructure, "gcp"), ready, false},
		"another provider got a contract":    {aws, waiting(infrastructure, "gcp"), upgraded, false},
		"another provider was installed":     {aws, waiting(bootstrap, "kubeadm"), installed, false},
		"a dependency became ready":          {dependent, v1beta1(infrastructure, "gcp"), ready, true},
		"no dependency became ready":         {dependent, v1beta1(bootstrap, "gcp"), ready, false},
		"a duplicate was deleted":            {aws, waiting(infrastructure, "aws"), nil, true},
		"core waits, and one became ready":   {waiting(core, "cluster-api"), waiting(infrastructure, "aws"), ready, true},
		"core waits, and one was deleted":    {waiting(core, "cluster-api"), waiting(infrastructure, "aws"), nil, true},
		"a second core, and one was deleted": {waiting(core, "cluster-api"), v1beta1(core, "cluster-api"), nil, true},
	} {
		t.Run(what, func(t *testing.T) {
			want := 0
			if c.woken {
				want = 1
			}

			NewWithT(t).Expect(wokenBy(t, c.waiting, c.other, c.change)).To(HaveLen(want))
		})
	}

	t.Run("of another cluster", func(t *testing.T) {
		remote := v1beta1(bootstrap, "kubeadm")
		remote.GetSpec().KubeConfig = &v1alpha2.KubeConfig{}
		NewWithT(t).Expect(wokenBy(t, aws, remote, upgraded)).To(BeEmpty())
	})
}

// waiting returns a provider that is not ready.
func waiting(t v1alpha2.ProviderType, name string) v1alpha2.Provider {
	p := t.New()
	p.SetNamespace("system")
	p.SetName(name)

	return p
}

// v1beta1 returns a provider with the contract v1beta1.
func v1beta1(t v1alpha2.ProviderType, name string) v1alpha2.Provider {
	p := waiting(t, name)
	p.GetStatus().Contract = new("v1beta1")

	return p
}

// wokenBy returns the requests that a change of another provider causes; nil deletes it.
func wokenBy(
	t *testing.T, waiting, other v1alpha2.Provider, change func(v1alpha2.Provider),
) (requests []reconcile.Request) {
	t.Helper()
	other.SetNamespace("others")
	other.SetUID("other")

	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha2.AddToScheme(scheme)).To(Succeed())

	kind := waiting.ProviderType()
	name := func(o client.Object) []string { return []string{o.GetName()} }
	cache := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(kind.New(), keysField, keysOf).
		WithIndex(kind.New(), preflight.NameField, name).
		WithObjects(waiting).Build()
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())

	defer queue.ShutDown()

	watch := Kind{Cache: cache, Type: kind}.otherProviders(other.ProviderType())

	if change == nil {
		watch.Delete(t.Context(), event.DeleteEvent{Object: other}, queue)
	} else {
		now := other.DeepCopyObject().(v1alpha2.Provider)
		change(now)
		watch.Update(t.Context(), event.UpdateEvent{ObjectOld: other, ObjectNew: now}, queue)
	}

	for queue.Len() > 0 {
		request, _ := queue.Get()
		requests = append(requests, request)
	}

	return requests
}
