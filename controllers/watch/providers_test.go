package watch

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestStandingChanged(t *testing.T) {
	contract, deleted := "v1beta2", metav1.Now()

	for what, c := range map[string]struct {
		change func(core *v1alpha2.CoreProvider)
		woken  bool
	}{
		"ready": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkTrue(core, v1alpha2.ReadyCondition, v1alpha2.HealthyReason, "it runs")
		}, true},
		"installed": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkTrue(core, v1alpha2.ProviderInstalledCondition, v1alpha2.ProviderInstalledReason, "applied")
		}, true},
		"a release": {func(core *v1alpha2.CoreProvider) { core.Status.Release = &v1alpha2.ReleaseStatus{} }, true},
		"paused": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkTrue(core, v1alpha2.PausedCondition, v1alpha2.PausedReason, "no replicas")
		}, true},
		"another contract": {func(core *v1alpha2.CoreProvider) { core.Status.Contract = &contract }, true},
		"another spec":     {func(core *v1alpha2.CoreProvider) { core.Generation++ }, true},
		"being deleted":    {func(core *v1alpha2.CoreProvider) { core.DeletionTimestamp = &deleted }, true},
		"progress": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkReconciling(core, v1alpha2.ProgressingReason, "1 of 2")
		}, false},
		"available upgrades": {func(core *v1alpha2.CoreProvider) {
			core.Status.AvailableUpgrades = make([]v1alpha2.AvailableUpgrade, 1)
		}, false},
		"a label": {func(core *v1alpha2.CoreProvider) { core.Labels = map[string]string{"team": "a"} }, false},
	} {
		t.Run(what, func(t *testing.T) {
			before := &v1alpha2.CoreProvider{}
			now := before.DeepCopy()
			c.change(now)
			NewWithT(t).Expect(standingChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: now})).To(Equal(c.woken))
		})
	}
}
