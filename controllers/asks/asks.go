// Package asks reads what the annotations of an object ask of the operator: when it is applied and deleted, and what
// may be done with it.
package asks

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Check returns a *problem.Error if an annotation of a release's objects is invalid.
func Check(objects []*unstructured.Unstructured) error {
	return cmp.Or(checkOrders(objects), checkPolicies(objects))
}
