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

// TestUnobservedChange: users do not know generations.
func TestUnobservedChange(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "manager", "generation": int64(7)},
		"status":   map[string]any{"observedGeneration": int64(6)},
	}}

	NewWithT(t).Expect(health.Compute(o)).To(And(
		HaveField("Status", status.InProgressStatus),
		HaveField("Message", "its controller has not observed the last change yet")))
}

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

// TestPendingClaim: the claim's status does not say what it waits for.
func TestPendingClaim(t *testing.T) {
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim",
		"metadata": map[string]any{"namespace": "capi-system", "name": "images"},
		"status":   map[string]any{"phase": "Pending"},
	}}
	NewWithT(t).Expect(health.Compute(claim)).To(And(HaveField("Status", status.InProgressStatus), HaveField("Message",
		"it has no volume, or its StorageClass waits for a pod that uses it; see kubectl describe persistentvolumeclaim "+
			"images -n capi-system")))
}

// TestReplacedByHand: workloads whose pods a user replaces need pods that are ready, of any revision.
func TestReplacedByHand(t *testing.T) {
	workload := func(kind, strategy string, spec, found map[string]any) *unstructured.Unstructured {
		spec["updateStrategy"] = map[string]any{"type": strategy}
		found["observedGeneration"] = int64(2)

		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": "agent", "generation": int64(2)},
			"spec": spec, "status": found,
		}}
	}
	agents := func(strategy string, current, updated, ready int64) *unstructured.Unstructured {
		return workload("DaemonSet", strategy, map[string]any{}, map[string]any{
			"desiredNumberScheduled": int64(3), "currentNumberScheduled": current, "updatedNumberScheduled": updated,
			"numberAvailable": ready, "numberReady": ready,
		})
	}
	replicas := func(strategy string, all, updated, ready int64) *unstructured.Unstructured {
		return workload("StatefulSet", strategy, map[string]any{"replicas": int64(3)}, map[string]any{
			"replicas": all, "readyReplicas": ready, "currentReplicas": all - updated, "updatedReplicas": updated,
			"currentRevision": "agent-1", "updateRevision": "agent-2",
		})
	}
	partitioned := replicas("RollingUpdate", 3, 1, 2)
	NewWithT(t).Expect(unstructured.SetNestedField(partitioned.Object, int64(2), "spec", "updateStrategy",
		"rollingUpdate", "partition")).To(Succeed())

	unobserved := agents("OnDelete", 3, 0, 3)
	unobserved.SetGeneration(3)

	for name, c := range map[string]struct {
		object *unstructured.Unstructured
		want   status.Status
	}{
		"a DaemonSet with old pods":                   {agents("RollingUpdate", 3, 0, 3), status.InProgressStatus},
		"a DaemonSet, OnDelete, with old pods":        {agents("OnDelete", 3, 0, 3), status.CurrentStatus},
		"a DaemonSet, OnDelete, without a pod":        {agents("OnDelete", 2, 0, 2), status.InProgressStatus},
		"a DaemonSet, OnDelete, with pods not ready":  {agents("OnDelete", 3, 0, 1), status.InProgressStatus},
		"a DaemonSet, OnDelete, not observed yet":     {unobserved, status.InProgressStatus},
		"a StatefulSet with old pods":                 {replicas("RollingUpdate", 3, 0, 3), status.InProgressStatus},
		"a StatefulSet, OnDelete, with old pods":      {replicas("OnDelete", 3, 0, 3), status.CurrentStatus},
		"a StatefulSet, OnDelete, with some new pods": {replicas("OnDelete", 3, 2, 3), status.CurrentStatus},
		"a StatefulSet, OnDelete, without pods":       {replicas("OnDelete", 0, 0, 0), status.InProgressStatus},
		"a StatefulSet, OnDelete, none ready":         {replicas("OnDelete", 3, 0, 0), status.InProgressStatus},
		"a StatefulSet, partitioned, one not ready":   {partitioned, status.InProgressStatus},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.object.DeepCopy()
			result := health.Compute(c.object)

			g := NewWithT(t)
			g.Expect(result.Status).To(Equal(c.want), result.Message)
			g.Expect(c.object).To(Equal(before))
		})
	}
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
	g.Expect(report.Message("ns")).To(BeEmpty())

	for _, name := range []string{"b", "c", "d", "e"} {
		report.Objects = append(report.Objects, configMap(name, status.InProgressStatus))
	}

	g.Expect(report.Healthy()).To(BeFalse())
	g.Expect(report.Failed()).To(BeFalse())
	g.Expect(report.Message("ns")).To(Equal("ConfigMap b: is InProgress; ConfigMap c: is InProgress; " +
		"ConfigMap d: is InProgress; and 1 more"))

	g.Expect(report.Message("other")).To(HavePrefix("ConfigMap ns/b: is InProgress; "))

	stuck := configMap("manager", status.InProgressStatus)
	stuck.Message, stuck.NamesPod = "Unschedulable: no node (pod manager-0)", true
	g.Expect(stuck.Describe("ns")).To(Equal("Unschedulable: no node (pod manager-0)"))
	g.Expect(stuck.Describe("other")).To(Equal("Unschedulable: no node (pod manager-0) in namespace ns"))

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
