package adopt

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/predecessor"
)

// TestTakenOver checks that a status that cluster-api-operator has left does not end waiting.
func TestTakenOver(t *testing.T) {
	released := &v1alpha2.ReleaseStatus{Name: "cluster-api"}

	for name, c := range map[string]struct {
		finalizers []string
		release    *v1alpha2.ReleaseStatus
		condition  string
		reason     string
		done, fail bool
	}{
		"theirs": {
			finalizers: []string{predecessor.Finalizer}, condition: v1alpha2.ReadyCondition, reason: "MinimumReplicasAvailable",
		},
		"taken over a moment ago": {condition: v1alpha2.ReadyCondition, reason: "MinimumReplicasAvailable"},
		"adopted": {
			release: released, condition: v1alpha2.ReadyCondition, reason: v1alpha2.HealthyReason, done: true,
		},
		"its finalizer put back": {
			finalizers: []string{predecessor.Finalizer}, release: released,
			condition: v1alpha2.ReadyCondition, reason: v1alpha2.HealthyReason,
		},
		"refused by its webhooks": {condition: v1alpha2.StalledCondition, reason: v1alpha2.ChangeRefusedReason},
		"stalled":                 {condition: v1alpha2.StalledCondition, reason: v1alpha2.SecretNotFoundReason, fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Name: "cluster-api", Finalizers: c.finalizers}}
			p.Status.Release = c.release
			conditions.MarkTrue(p, c.condition, c.reason, "text")

			done, err := takenOver(p)
			g.Expect(done).To(Equal(c.done))
			g.Expect(err != nil).To(Equal(c.fail), "%v", err)
		})
	}

	_, err := takenOver(nil)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("deleted")))
}

// TestCachesOf checks that only Secrets are found in which cluster-api-operator has cached this provider.
func TestCachesOf(t *testing.T) {
	g := NewWithT(t)
	p := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: "cluster-api", UID: "1"}}

	secret := func(namespace, name string, owner metav1.OwnerReference) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{owner},
		}}
	}
	own := metav1.OwnerReference{
		APIVersion: v1alpha2.GroupVersion.String(), Kind: "CoreProvider", Name: p.Name, UID: p.UID,
	}
	other := own
	other.UID = "2"

	c := fake.NewFakeClient(
		secret("capi-system", "core-cluster-api-v1.12.0-cache", own),
		secret("capi-system", "core-cluster-api-v1.13.5-cache", own),
		secret("capi-system", "core-cluster-api-v1.14.0-cache", other),
		secret("other", "core-cluster-api-v1.12.0-cache", own),
		secret("capi-system", "bootstrap-cluster-api-v1.12.0-cache", own),
		secret("capi-system", "core-cluster-api-credentials", own),
	)

	found, err := cachesOf(t.Context(), c, p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(ConsistOf(
		HaveField("Name", "core-cluster-api-v1.12.0-cache"), HaveField("Name", "core-cluster-api-v1.13.5-cache")))
}
