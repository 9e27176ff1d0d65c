// Package objectdiff compares Kubernetes objects: their fields, or lists of them as texts. Texts never show the values
// of Secrets, and a Masker hides those of variables.
package objectdiff

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Kind is how an object differs.
type Kind string

// The kinds of changes.
const (
	Created Kind = "created"
	Changed Kind = "changed"
	Deleted Kind = "deleted"
)

// Change is the change of one object.
type Change struct {
	// Object is its kind, namespace and name.
	Object string `json:"object"`
	Kind   Kind   `json:"change"`
	// Diff is in the unified format, without the names of files.
	Diff string `json:"diff"`
}

// Compare returns the objects that differ: first those in after, in its order, then those only in before. contextLines
// is the number of unchanged lines around changes.
func Compare(before, after []*unstructured.Unstructured, contextLines int) ([]Change, error) {
	old := map[identity]*unstructured.Unstructured{}
	for _, o := range before {
		old[identify(o)] = o
	}

	kept := map[identity]bool{}

	var changes []Change

	for _, o := range after {
		id := identify(o)
		kept[id] = true

		kind := Changed
		if old[id] == nil {
			kind = Created
		}

		diff, err := unified(old[id], o, contextLines)
		if err != nil {
			return nil, err
		}

		if diff != "" {
			changes = append(changes, Change{Object: id.name, Kind: kind, Diff: diff})
		}
	}

	for _, o := range before {
		id := identify(o)
		if kept[id] {
			continue
		}

		diff, err := unified(o, nil, contextLines)
		if err != nil {
			return nil, err
		}

		changes = append(changes, Change{Object: id.name, Kind: Deleted, Diff: diff})
	}

	return changes, nil
}

// identity identifies an object independent of its API version.
type identity struct {
	group, name string // name includes the kind and the namespace
}

func identify(o *unstructured.Unstructured) identity {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}

	return identity{group: o.GroupVersionKind().Group, name: o.GetKind() + " " + name}
}

// unified returns the diff of two states of an object, one of which can be nil. It is empty if they
// are equal.
func unified(before, after *unstructured.Unstructured, contextLines int) (string, error) {
	before, after = mask(before, after)

	oldText, err := text(before)
	if err != nil {
		return "", err
	}

	newText, err := text(after)
	if err != nil {
		return "", err
	}

	diff, err := udiff.ToUnified("", "", oldText, udiff.Lines(oldText, newText), contextLines)
	if err != nil {
		return "", fmt.Errorf("compare objects: %w", err)
	}

	if diff == "" {
		return "", nil
	}

	_, hunks, _ := strings.Cut(diff, "@@") // drop the names of files

	return "@@" + hunks, nil
}

func text(o *unstructured.Unstructured) (string, error) {
	if o == nil {
		return "", nil
	}

	data, err := yaml.Marshal(o.Object)

	return string(data), err
}
