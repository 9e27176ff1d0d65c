package observe

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestLives(t *testing.T) {
	object := func(kind, name, uid, phase string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase}}}
		o.SetKind(kind)
		o.SetNamespace("default")
		o.SetName(name)
		o.SetUID(types.UID(uid))

		return o
	}

	for _, test := range []struct {
		name    string
		observe func(*Lives)
		lost    []string
	}{
		{"new objects become complete", func(l *Lives) {
			l.Observe(object("Machine", "b", "2", ""))
			l.Observe(object("Machine", "b", "2", "Provisioned"))
			l.Observe(object("Machine", "b", "2", "Running"))
		}, nil},
		{"a phase is lost", func(l *Lives) {
			l.Observe(object("Machine", "a", "1", "Failed"))
			l.Observe(object("Machine", "a", "1", "Failed"))
		}, []string{`Machine default/a changed from Running to "Failed"`}},
		{"an object is replaced", func(l *Lives) {
			l.Observe(object("Machine", "a", "9", "Pending"))
		}, []string{"Machine default/a was replaced"}},
		{"an object is deleted", func(l *Lives) {
			l.ObserveDeletion(object("Machine", "a", "1", "Running"))
		}, []string{"Machine default/a was deleted"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := &Lives{}
			l.Observe(object("Cluster", "a", "0", "Provisioned"))
			l.Observe(object("Machine", "a", "1", "Running"))
			test.observe(l)
			NewWithT(t).Expect(l.Lost()).To(Equal(test.lost))
		})
	}

	l := &Lives{}
	l.Observe(object("Cluster", "a", "0", "Provisioned"))
	l.Observe(object("Machine", "a", "1", "Running"))
	l.Observe(object("Machine", "b", "2", "Pending"))
	NewWithT(t).Expect([]int{l.Complete("Cluster"), l.Complete("Machine")}).To(Equal([]int{1, 1}))
}
