package health

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/controllers/object"
)

// workloads are the kinds that have pods, by spec.selector.
var workloads = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:  true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}:   true,
	{Group: "batch", Kind: "Job"}:        true,
}

const (
	// patience is how long a workload may take before its pods are looked at: most need no longer
	// to start.
	patience = 5 * time.Second
	// longestLook is the longest time between two looks at the pods of a workload that stays
	// unwell.
	longestLook = 5 * time.Minute
	// mostPods is how many pods of a workload are looked at.
	mostPods = 20
)

// explain puts into a workload's verdict what its pods say, and has the provider woken to look
// again.
func (t *Tracker) explain(ctx context.Context, name object.Key, o client.Object, v verdict) verdict {
	workload, ok := o.(*unstructured.Unstructured)
	if !ok || !workloads[name.GroupKind()] {
		return v
	}

	unwell, wait := t.unwellFor(name, v)
	if v.status == status.CurrentStatus || v.status == status.TerminatingStatus {
		return v
	}

	t.wakeOwner(o, wait)

	if reason := replicaFailure(workload); reason != "" {
		v.message = reason
		return v
	}

	if unwell < patience {
		return v
	}

	pods, err := t.pods(ctx, workload)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Cannot look at the pods of what is not well", "object", name.String())
		return v
	}

	if reason := podsProblem(pods); reason != "" {
		v.message = reason
	}

	return v
}

// unwellFor says how long a workload has not been well, and when to look at its pods again: at
// twice that time.
func (t *Tracker) unwellFor(name object.Key, v verdict) (unwell, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if v.status == status.CurrentStatus {
		delete(t.unwell, name)
		return 0, 0
	}

	since, ok := t.unwell[name]
	if !ok {
		since = time.Now()
		t.unwell[name] = since
	}

	unwell = time.Since(since)
	if unwell < patience {
		return unwell, patience - unwell
	}

	return unwell, min(unwell, longestLook)
}

// pods lists some pods of a workload.
func (t *Tracker) pods(ctx context.Context, workload *unstructured.Unstructured) ([]corev1.Pod, error) {
	var selector metav1.LabelSelector

	fields, _, _ := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return nil, err
	}

	matching, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return nil, err
	}

	list := &corev1.PodList{}
	err = t.live.List(
		ctx,
		list,
		client.InNamespace(workload.GetNamespace()),
		client.MatchingLabelsSelector{Selector: matching},
		client.Limit(mostPods),
	)

	return list.Items, err
}

// replicaFailure is why a Deployment's pods cannot even be created, such as a quota; empty if they
// can.
func replicaFailure(workload *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(workload.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "ReplicaFailure" && condition["status"] == "True" {
			message, _ := condition["message"].(string)
			return "its pods cannot be created: " + oneLine(message)
		}
	}

	return ""
}
