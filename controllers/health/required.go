package health

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// observedGeneration stands, in a list of required conditions, for a status that is up to date.
const observedGeneration = "observedGeneration"

// computeRequired returns the health of an object that kstatus considers current, according to the annotation that
// lists what its status must have. kstatus takes an object for current while its controller has not written a
// status yet, and does not know all conditions.
func computeRequired(o *unstructured.Unstructured, current Result) Result {
	required, annotated := o.GetAnnotations()[v1alpha2.HealthyWhenAnnotation]
	if !annotated {
		return current
	}

	for name := range strings.SplitSeq(required, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}

		if problem := missingInStatus(o, name); problem != "" {
			current.Status, current.Message = status.InProgressStatus, problem
			return current
		}
	}

	return current
}

// missingInStatus returns why an object does not have a required condition; empty if it does.
func missingInStatus(o *unstructured.Unstructured, name string) string {
	if name == observedGeneration {
		if observed, found, _ := unstructured.NestedInt64(o.Object, "status", observedGeneration); !found ||
			observed != o.GetGeneration() {
			return "its controller has not observed it yet"
		}

		return ""
	}

	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")

	at := slices.IndexFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == name
	})
	if at < 0 {
		return fmt.Sprintf("it does not have the condition %s yet", name)
	}

	condition := conditions[at].(map[string]any)
	if condition["status"] == string(corev1.ConditionTrue) {
		return ""
	}

	message, _ := condition["message"].(string)
	if message == "" {
		return fmt.Sprintf("its condition %s is not True", name)
	}

	return fmt.Sprintf("its condition %s is not True: %s", name, message)
}
