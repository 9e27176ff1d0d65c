package health_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/controllers/health"
)

func TestCompute(t *testing.T) {
	deployment := func(statusFields map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1",
			"kind":       "Deployment",
			"metadata":   map[string]any{"name": "manager", "generation": int64(1)},
			"spec":       map[string]any{"replicas": int64(1)},
			"status":     statusFields,
		}}
	}
	deleted := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}

	for name, c := range map[string]struct {
		object client.Object
		want   status.Status
	}{
		"metadata":          {&metav1.PartialObjectMetadata{}, status.CurrentStatus},
		"being deleted":     {deleted, status.TerminatingStatus},
		"a type not read":   {&corev1.ConfigMap{}, status.UnknownStatus},
		"not observed":      {deployment(map[string]any{}), status.InProgressStatus},
		"an invalid status": {deployment(map[string]any{"conditions": "none"}), status.UnknownStatus},
		"available": {deployment(map[string]any{
			"observedGeneration": int64(1),
			"replicas":           int64(1),
			"updatedReplicas":    int64(1),
			"readyReplicas":      int64(1),
			"availableReplicas":  int64(1),
			"conditions":         []any{map[string]any{"type": "Available", "status": "True"}},
		}), status.CurrentStatus},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			result := health.Compute(c.object)

			g.Expect(result.Status).To(Equal(c.want), result.Message)
			g.Expect(result.Healthy()).To(Equal(c.want == status.CurrentStatus))
		})
	}
}

// TestPausedRollout: kstatus waits for the ReplicaSet, whose rollout a user has to resume.
func TestPausedRollout(t *testing.T) {
	g := NewWithT(t)
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   map[string]any{"namespace": "capa-system", "name": "manager", "generation": int64(2)},
		"spec":       map[string]any{"replicas": int64(1), "paused": true, "progressDeadlineSeconds": int64(600)},
		"status": map[string]any{
			"observedGeneration": int64(2), "replicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1),
		},
	}}

	// A failure that was recorded and the present state are the same text, and said once.
	paused := "its rollout is paused; run `kubectl rollout resume deployment/manager -n capa-system`"
	g.Expect(health.Compute(deployment)).To(And(
		HaveField("Status", status.InProgressStatus), HaveField("Message", paused)))

	g.Expect(unstructured.SetNestedField(deployment.Object, int64(1), "status", "updatedReplicas")).To(Succeed())
	g.Expect(health.Compute(deployment).Message).To(Equal(paused))

	unstructured.RemoveNestedField(deployment.Object, "spec", "paused")
	g.Expect(health.Compute(deployment).Message).To(Equal("ReplicaSet not Available"))
}

func TestReport(t *testing.T) {
	g := NewWithT(t)
	configMap := func(name string, s status.Status) health.ObjectHealth {
		return health.ObjectHealth{
			Object: named(corev1.SchemeGroupVersion.WithKind("ConfigMap"), "ns", name),
			Result: health.Result{Status: s, Message: "is " + string(s)},
		}
	}

	report := health.Report{Objects: []health.ObjectHealth{configMap("a", status.CurrentStatus)}}
	g.Expect(report.Healthy()).To(BeTrue())
	g.Expect(report.Message()).To(BeEmpty())

	for _, name := range []string{"b", "c", "d", "e"} {
		report.Objects = append(report.Objects, configMap(name, status.InProgressStatus))
	}

	g.Expect(report.Healthy()).To(BeFalse())
	g.Expect(report.Failed()).To(BeFalse())
	g.Expect(report.Message()).To(Equal("ConfigMap ns/b: is InProgress; ConfigMap ns/c: is InProgress; " +
		"ConfigMap ns/d: is InProgress; and 1 more"))

	report.Objects = append(report.Objects, configMap("f", status.FailedStatus))
	g.Expect(report.Failed()).To(BeTrue())
}

// computed returns the health of an object of a kind with one condition.
func computed(group, kind, condition, value, reason string) health.ObjectHealth {
	o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": condition, "status": value, "reason": reason},
	}}}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})

	return health.ObjectHealth{Result: health.Compute(o)}
}

// job returns the health of a Job with a status.
func job(fields map[string]any, suspended bool) health.ObjectHealth {
	o := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"suspend": suspended}, "status": fields,
	}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"})

	return health.ObjectHealth{Result: health.Compute(o)}
}

func TestVerdict(t *testing.T) {
	healthy := health.ObjectHealth{Result: health.Result{Status: status.CurrentStatus}}

	for name, test := range map[string]struct {
		object health.ObjectHealth
		want   health.Verdict
	}{
		"a healthy object":  {healthy, health.Ready},
		"a Job that runs":   {job(map[string]any{"startTime": "2026-01-01T12:00:00Z"}, false), health.Wait},
		"a suspended Job":   {job(map[string]any{"startTime": "2026-01-01T12:00:00Z"}, true), health.Ready},
		"a completed Job":   {computed("batch", "Job", "Complete", "True", ""), health.Ready},
		"a Job that failed": {computed("batch", "Job", "Failed", "True", "BackoffLimitExceeded"), health.Stop},
		"a Deployment after its deadline": {
			computed("apps", "Deployment", "Progressing", "False", "ProgressDeadlineExceeded"), health.Wait,
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := health.Report{Objects: []health.ObjectHealth{healthy, test.object}}
			NewWithT(t).Expect(report.Verdict()).To(Equal(test.want))
		})
	}
}
