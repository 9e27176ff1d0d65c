package object

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLastManager(t *testing.T) {
	entry := func(manager, subresource string, second int64) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Subresource: subresource, Time: &metav1.Time{Time: time.Unix(second, 0)},
		}
	}

	for want, entries := range map[string][]metav1.ManagedFieldsEntry{
		"another program": {entry("capstan", "", 1)},
		"clusterctl": {
			entry("kubectl-edit", "", 2), entry("clusterctl", "", 3), entry("kubectl", "", 1), entry("capstan", "", 4),
		},
		"kubectl-edit": {entry("kubectl-edit", "", 1), entry("kube-controller-manager", "status", 2)},
	} {
		o := &metav1.ObjectMeta{ManagedFields: entries}
		NewWithT(t).Expect(LastManager(o)).To(Equal(want))
	}
}
