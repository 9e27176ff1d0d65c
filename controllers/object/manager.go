package object

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// LastManager returns the field manager, other than Capstan, that has changed an object last, such as "kubectl-edit".
// Changes of the status do not count. It is "another program" if there is none.
func LastManager(o metav1.Object) string {
	var last metav1.ManagedFieldsEntry

	for _, entry := range o.GetManagedFields() {
		if entry.Manager == v1alpha2.FieldOwner || entry.Subresource != "" {
			continue
		}

		if last.Time == nil || last.Time.Before(entry.Time) {
			last = entry
		}
	}

	if last.Manager == "" {
		return "another program"
	}

	return last.Manager
}
