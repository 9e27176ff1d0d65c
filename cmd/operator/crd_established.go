package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/charts"
)

// errNoCRD is why the operator cannot run without one of its CRDs.
var errNoCRD = errors.New(
	"it is not installed; apply the CRDs of this version, from crds/ in the chart or from the release's capstan.yaml")

// pollInterval is the time between two looks at a CustomResourceDefinition that is not served yet.
const pollInterval = 250 * time.Millisecond

// awaitCRDs waits until the API server serves all of the operator's CustomResourceDefinitions. The
// error names one that does not exist, or that is not served within the timeout.
func awaitCRDs(ctx context.Context, c client.Reader, timeout time.Duration) error {
	definitions, err := charts.CRDs()
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	for _, definition := range definitions {
		if err := awaitCRD(ctx, c, definition); err != nil {
			return fmt.Errorf("CustomResourceDefinition %s: %w", definition.GetName(), err)
		}
	}

	return nil
}

func awaitCRD(ctx context.Context, c client.Reader, definition *unstructured.Unstructured) error {
	reason := "the API server has not looked at it"

	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(definition.GroupVersionKind())

		err := c.Get(ctx, client.ObjectKeyFromObject(definition), live)
		if apierrors.IsNotFound(err) {
			return false, errNoCRD
		}

		if apierrors.IsForbidden(err) {
			return false, err
		}

		if err != nil {
			if !errors.Is(err, ctx.Err()) { // the end of the time is no reason
				reason = "the last look failed: " + err.Error()
			}

			return false, ctx.Err() // while there is time it may pass, such as when the API server starts again
		}

		var established bool

		established, reason = isEstablished(live, reason)

		return established, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the API server does not serve it: %s", reason)
	}

	return err
}

// isEstablished reports whether a CustomResourceDefinition is served. If not, it returns the reason that its
// conditions give, or the one that is known already.
func isEstablished(live *unstructured.Unstructured, known string) (established bool, reason string) {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")

	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		if condition["type"] == "Established" && condition["status"] == "True" {
			return true, ""
		}

		if message, _ := condition["message"].(string); condition["status"] == "False" && message != "" {
			known = message
		}
	}

	return false, known
}
