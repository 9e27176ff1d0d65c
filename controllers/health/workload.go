package health

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/controllers/object"
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

// explain returns the health of an object: for an unhealthy workload with why its pods do not run. The provider is
// woken later to read the pods again.
func (t *Tracker) explain(ctx context.Context, owner Owner, id object.Key, workload *seen) Result {
	result := workload.result
	if workload.selector == nil {
		return result
	}

	unhealthy := t.unhealthyFor(id, result)
	if result.Healthy() || result.Status == status.TerminatingStatus {
		return result
	}

	t.wake(owner.Provider, owner.Namespace, nextRead(unhealthy))

	if workload.refusal != "" {
		result.Message = workload.refusal
		return result
	}

	if unhealthy < startupTime {
		return result
	}

	list := &corev1.PodList{}

	err := t.client.List(ctx, list,
		client.InNamespace(id.Namespace), client.MatchingLabelsSelector{Selector: workload.selector}, client.Limit(maxPods))
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Failed to read the pods of an unhealthy workload", "object", id.String())
		return result
	}

	if problem := podsProblem(list.Items); problem != "" {
		result.Message, result.NamesPod = problem, true
	}

	result.Final = result.Final || hasInvalidImage(result.Images, list.Items)

	return result
}

// unhealthyFor returns how long a workload has been unhealthy.
func (t *Tracker) unhealthyFor(id object.Key, result Result) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()

	known := t.known(id)

	switch {
	case result.Healthy():
		known.unhealthySince = time.Time{}
		return 0
	case known.unhealthySince.IsZero():
		known.unhealthySince = time.Now()
	}

	return time.Since(known.unhealthySince)
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

// podSelector returns what selects the pods of a workload: nothing if it has no valid selector, or a huge one.
func podSelector(workload *unstructured.Unstructured) labels.Selector {
	var fields metav1.LabelSelector

	content, _, _ := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &fields); err != nil {
		return labels.Nothing()
	}

	selector, err := metav1.LabelSelectorAsSelector(&fields)
	if err != nil || len(selector.String()) > maxList {
		return labels.Nothing()
	}

	return selector
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
