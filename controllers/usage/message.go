package usage

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Usage is what was found.
type Usage struct {
	// Kinds that have objects or could not be looked into, those with most objects first.
	Kinds []Kind
}

// Kind is what was found of one kind.
type Kind struct {
	// Name of the CRD, e.g. "awsclusters.infrastructure.cluster.x-k8s.io".
	Name string
	// Count of the objects. Beyond a hundred it is the API server's estimate.
	Count int64
	// Examples are some of them, as namespace/name, with a remark on those that are being deleted.
	Examples []string
	// Problem says why the kind could not be looked into, or not to its end, and what to do; empty
	// if it could.
	Problem string
}

func (k *Kind) add(o *metav1.PartialObjectMetadata) {
	k.Count++
	if len(k.Examples) == examples {
		return
	}

	example := strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
	if !o.DeletionTimestamp.IsZero() {
		example += " (being deleted, held by its finalizers " + strings.Join(o.Finalizers, ", ") + ")"
	}

	k.Examples = append(k.Examples, example)
}

// None reports whether it is certain that there are no objects.
func (u *Usage) None() bool { return len(u.Kinds) == 0 }

// mostKinds is how many kinds a message names: a provider may have dozens.
const mostKinds = 5

// Message says what exists and what could not be looked into, for a person who wants it gone.
func (u *Usage) Message() string {
	var (
		total         int64
		found, failed []string
	)

	for _, k := range u.Kinds {
		if total += k.Count; k.Count > 0 {
			found = append(found, fmt.Sprintf("%d %s (e.g. %s)", k.Count, k.Name, strings.Join(k.Examples, ", ")))
		}

		if k.Problem != "" {
			failed = append(failed, fmt.Sprintf("%s (%s)", k.Name, k.Problem))
		}
	}

	var parts []string

	switch {
	case total == 1:
		parts = append(parts, "1 object still exists: "+enumerate(found))
	case total > 1:
		parts = append(parts, fmt.Sprintf("%d objects still exist: %s", total, enumerate(found)))
	}

	if len(failed) > 0 {
		parts = append(parts, "it is not known whether there are "+enumerate(failed))
	}

	return strings.Join(parts, "; ")
}

func enumerate(items []string) string {
	if len(items) <= mostKinds {
		return strings.Join(items, ", ")
	}

	return fmt.Sprintf("%s and objects of %d more kinds", strings.Join(items[:mostKinds], ", "), len(items)-mostKinds)
}
