package health

import (
	"context"
	"time"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
)

// workloadKinds are the kinds whose spec.selector selects pods.
var workloadKinds = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:  true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}:   true,
	{Group: "batch", Kind: "Job"}:        true,
}

const (
	// startupTime is how long a workload may take before its pods are read. Most need no longer.
	startupTime = 5 * time.Second
	// maxInterval is the longest time between two reads of the pods of an unhealthy workload.
	maxInterval = 5 * time.Minute
	// maxPods is how many pods of a workload are read.
	maxPods = 20
)

// explain adds to the result of an unhealthy workload why its pods do not run, and wakes the
// provider later to check again.
func (t *Tracker) explain(ctx context.Context, id object.Key, o client.Object, result Result) Result {
	workload, ok := o.(*unstructured.Unstructured)
	if !ok || !hasPods(workload) {
		return result
	}

	unhealthy := t.unhealthyFor(id, result)
	if result.Healthy() || result.Status == status.TerminatingStatus {
		return result
	}

	t.wakeOwner(o, nextRead(unhealthy))

	if problem := replicaFailure(workload); problem != "" {
		result.Message = problem
		return result
	}

	if unhealthy < startupTime {
		return result
	}

	pods, err := t.readPods(ctx, workload)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Failed to read the pods of an unhealthy workload", "object", id.String())
		return result
	}

	if problem := podsProblem(pods); problem != "" {
		result.Message = problem
	}

	result.Final = result.Final || hasInvalidImage(workload, pods)

	return result
}

// unhealthyFor returns how long a workload has been unhealthy.
func (t *Tracker) unhealthyFor(id object.Key, result Result) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()

	if result.Healthy() {
		delete(t.unhealthySince, id)
		return 0
	}

	since, ok := t.unhealthySince[id]
	if !ok {
		since = time.Now()
		t.unhealthySince[id] = since
	}

	return time.Since(since)
}

// nextRead returns when to read the pods of a workload that has been unhealthy for some time: first
// when it should have started, and then after as long again each time. Unlike a back-off that counts
// attempts, this does not depend on how often events wake the provider in between.
func nextRead(unhealthy time.Duration) time.Duration {
	if unhealthy < startupTime {
		return startupTime - unhealthy
	}

	return min(unhealthy, maxInterval)
}

// hasPods reports whether an object is of a kind whose spec.selector selects pods: a Deployment, StatefulSet, DaemonSet
// or Job.
func hasPods(o *unstructured.Unstructured) bool {
	return workloadKinds[o.GroupVersionKind().GroupKind()]
}

// podSelector returns what selects the pods of an object that has pods.
func podSelector(workload *unstructured.Unstructured) (labels.Selector, error) {
	var selector metav1.LabelSelector

	fields, _, _ := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return nil, err
	}

	return metav1.LabelSelectorAsSelector(&selector)
}

// readPods returns some pods of a workload.
func (t *Tracker) readPods(ctx context.Context, workload *unstructured.Unstructured) ([]corev1.Pod, error) {
	selector, err := podSelector(workload)
	if err != nil {
		return nil, err
	}

	list := &corev1.PodList{}
	err = t.apiReader.List(ctx, list,
		client.InNamespace(workload.GetNamespace()),
		client.MatchingLabelsSelector{Selector: selector},
		client.Limit(maxPods),
	)

	return list.Items, err
}

// replicaFailure returns why the pods of a Deployment cannot even be created, such as a quota; empty
// if they can.
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
