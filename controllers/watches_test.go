package controllers

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestProvidersAreWokenByWhatTheyLookAtInCore(t *testing.T) {
	contract, deleted := "v1beta2", metav1.Now()

	for what, c := range map[string]struct {
		change func(core *v1alpha2.CoreProvider)
		woken  bool
	}{
		"it is ready": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkTrue(core, v1alpha2.ReadyCondition, v1alpha2.HealthyReason, "it runs")
		}, true},
		"it is installed": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkTrue(core, v1alpha2.ProviderInstalledCondition, v1alpha2.ProviderInstalledReason, "it is there")
		}, true},
		"its managers rest": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkTrue(core, v1alpha2.PausedCondition, v1alpha2.PausedReason, "no replicas")
		}, true},
		"it has another contract": {func(core *v1alpha2.CoreProvider) { core.Status.Contract = &contract }, true},
		"its spec is another":     {func(core *v1alpha2.CoreProvider) { core.Generation++ }, true},
		"it is being deleted":     {func(core *v1alpha2.CoreProvider) { core.DeletionTimestamp = &deleted }, true},
		"it tells how far it is": {func(core *v1alpha2.CoreProvider) {
			conditions.MarkReconciling(core, v1alpha2.ProgressingReason, "1 of 2")
		}, false},
		"it tells of newer ones": {func(core *v1alpha2.CoreProvider) {
			core.Status.AvailableUpgrades = make([]v1alpha2.AvailableUpgrade, 1)
		}, false},
		"somebody puts a label there": {func(core *v1alpha2.CoreProvider) { core.Labels = map[string]string{"team": "a"} }, false},
	} {
		t.Run(what, func(t *testing.T) {
			before := &v1alpha2.CoreProvider{}
			now := before.DeepCopy()
			c.change(now)
			NewWithT(t).Expect(standingChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: now})).To(Equal(c.woken))
		})
	}
}
