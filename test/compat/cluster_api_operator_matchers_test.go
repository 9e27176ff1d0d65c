package compat

import (
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// runVersion matches a provider that the programs which read cluster-api-operator's status take for ready at a
// version.
func runVersion(version string) types.GomegaMatcher {
	return And(
		haveStatus(v1alpha2.ReadyCondition, metav1.ConditionTrue),
		haveStatus(v1alpha2.ProviderInstalledCondition, metav1.ConditionTrue),
		haveStatus(v1alpha2.PreflightCheckCondition, metav1.ConditionTrue),
		WithTransform(func(p v1alpha2.Provider) *string { return p.GetStatus().InstalledVersion }, HaveValue(Equal(version))),
		WithTransform(func(p v1alpha2.Provider) string { return p.GetSpec().Version }, Equal(version)),
		WithTransform(func(p v1alpha2.Provider) bool { return p.GetStatus().ObservedGeneration == p.GetGeneration() },
			BeTrue()),
	)
}

// haveStatus matches a provider with a condition of this status.
func haveStatus(condition string, status metav1.ConditionStatus) types.GomegaMatcher {
	return WithTransform(func(p v1alpha2.Provider) metav1.ConditionStatus {
		if c := conditions.Get(p, condition); c != nil {
			return c.Status
		}

		return metav1.ConditionUnknown
	}, Equal(status))
}

// fail matches a provider with a condition that is False for this reason, with a message that has these parts.
func fail(condition, reason string, parts ...string) types.GomegaMatcher {
	matchers := []types.GomegaMatcher{haveStatus(condition, metav1.ConditionFalse),
		WithTransform(func(p v1alpha2.Provider) string { return conditions.GetReason(p, condition) }, Equal(reason))}

	for _, part := range parts {
		matchers = append(matchers, haveMessage(condition, part))
	}

	return And(matchers...)
}

// haveMessage matches a provider with a condition whose message has a part.
func haveMessage(condition, part string) types.GomegaMatcher {
	return WithTransform(
		func(p v1alpha2.Provider) string { return conditions.GetMessage(p, condition) }, ContainSubstring(part))
}
