// Package observe watches a cluster while a test changes it, and records whether objects were kept.
package observe

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// completePhases are the phases in which objects are complete, by kind.
var completePhases = map[string]string{"Cluster": "Provisioned", "Machine": "Running"}

// Lives records whether objects keep their UIDs, and those that were complete their phases.
type Lives struct {
	mu    sync.Mutex
	known map[string]life
	lost  []string
}

type life struct {
	uid   types.UID
	kind  string
	phase string // the last one
	// complete reports whether the phase is the one in which an object of the kind is complete.
	complete bool
}

// Observe adds the present state of an object.
func (l *Lives) Observe(o *unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()

	key := name(o)
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")

	before, seen := l.known[key]
	if seen && before.uid != o.GetUID() {
		l.lost = append(l.lost, key+" was replaced")
	} else if before.complete && phase != before.phase {
		l.lost = append(l.lost, fmt.Sprintf("%s changed from %s to %q", key, before.phase, phase))
	}

	if l.known == nil {
		l.known = map[string]life{}
	}

	l.known[key] = life{
		uid: o.GetUID(), kind: o.GetKind(), phase: phase, complete: phase == completePhases[o.GetKind()],
	}
}

// ObserveDeletion adds that an object no longer exists.
func (l *Lives) ObserveDeletion(o *unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.lost = append(l.lost, name(o)+" was deleted")
}

// Lost returns what should not have happened.
func (l *Lives) Lost() []string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return slices.Clone(l.lost)
}

// Complete returns the number of objects of a kind that are complete.
func (l *Lives) Complete(kind string) int {
	l.mu.Lock()
	defer l.mu.Unlock()

	count := 0

	for _, life := range l.known {
		if life.kind == kind && life.complete {
			count++
		}
	}

	return count
}

func name(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
}
