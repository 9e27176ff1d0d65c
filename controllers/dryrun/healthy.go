package dryrun

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
)

// BecomeHealthy gives an object the status of one that is healthy, and reports whether it was not.
func BecomeHealthy(o *unstructured.Unstructured) bool {
	found, err := status.Compute(o)
	if err != nil || found.Status != status.InProgressStatus {
		return false
	}

	now, _ := o.Object["status"].(map[string]any)
	if now == nil {
		now = map[string]any{}
	}

	now["observedGeneration"] = o.GetGeneration()

	switch o.GetKind() {
	case "Deployment", "StatefulSet", "ReplicaSet":
		setReplicas(o, now)
	case "DaemonSet":
		now["desiredNumberScheduled"], now["currentNumberScheduled"] = int64(1), int64(1)
		now["updatedNumberScheduled"], now["numberAvailable"], now["numberReady"] = int64(1), int64(1), int64(1)
	case "Job":
		now["startTime"], now["completionTime"], now["succeeded"] = clockTime(), clockTime(), int64(1)
		now["conditions"] = trueConditions("Complete")
	case "CustomResourceDefinition":
		now["conditions"] = trueConditions("NamesAccepted", "Established")
	case "APIService":
		now["conditions"] = trueConditions("Available")
	default:
		now["conditions"] = trueConditions("Ready")
	}

	o.Object["status"] = now

	return true
}

func setReplicas(o *unstructured.Unstructured, now map[string]any) {
	replicas, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if !found {
		replicas = 1
	}

	for _, field := range []string{
		"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas", "currentReplicas",
	} {
		now[field] = replicas
	}

	now["conditions"] = trueConditions("Available", "Progressing")
}

func trueConditions(types ...string) []any {
	conditions := make([]any, 0, len(types))
	for _, t := range types {
		conditions = append(conditions, map[string]any{
			"type": t, "status": "True", "reason": "NewReplicaSetAvailable", "lastTransitionTime": clockTime(),
		})
	}

	return conditions
}

func clockTime() string { return time.Now().UTC().Format(time.RFC3339) }
