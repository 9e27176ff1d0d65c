package main

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// errChanges says by the exit code alone that there are changes.
var errChanges = &exitError{code: 2}

// difference is what would change.
type difference struct {
	Provider string `json:"provider"`
	// From and To are versions of the provider.
	From        string         `json:"from,omitempty"`
	To          string         `json:"to"`
	Objects     []objectChange `json:"objects,omitempty"`
	NewCRDs     []string       `json:"newCRDs,omitempty"`
	ChangedCRDs []string       `json:"changedCRDs,omitempty"`
}

// objectChange is what would change in an object.
type objectChange struct {
	// Object is kind, namespace and name.
	Object string `json:"object"`
	// Change is created, changed or deleted.
	Change string `json:"change"`
	// Diff in the unified format, without the names of files.
	Diff string `json:"diff"`
}

func (d *difference) none() bool { return len(d.Objects)+len(d.NewCRDs)+len(d.ChangedCRDs) == 0 }

func (d *difference) summary() string {
	if d.none() {
		return fmt.Sprintf("%s: no changes", d.Provider)
	}

	counts := map[string]int{}
	for _, c := range d.Objects {
		counts[c.Change]++
	}

	versions := d.To
	if d.From != "" && d.From != d.To {
		versions = d.From + " to " + d.To
	}

	return fmt.Sprintf("%s %s: %d objects to create, %d to change, %d to delete; %d CRDs to create, %d to apply anew",
		d.Provider, versions, counts["created"], counts["changed"], counts["deleted"], len(d.NewCRDs), len(d.ChangedCRDs))
}

// compareObjects compares manifests object by object: first those of the new one in its order, then
// those that it does not have.
func compareObjects(before, after []*unstructured.Unstructured, contextLines int) ([]objectChange, error) {
	var changes []objectChange

	add := func(name string, change string, old, current *unstructured.Unstructured) error {
		diff, err := compareObject(old, current, contextLines)
		if err == nil && diff != "" {
			changes = append(changes, objectChange{name, change, diff})
		}

		return err
	}

	known := map[string]*unstructured.Unstructured{}
	for _, o := range before {
		known[identity(o)] = o
	}

	for _, o := range after {
		old, change := known[identity(o)], "created"
		if old != nil {
			change = "changed"
		}

		delete(known, identity(o))

		if err := add(fullName(o), change, old, o); err != nil {
			return nil, err
		}
	}

	for _, o := range before {
		if known[identity(o)] != nil {
			if err := add(fullName(o), "deleted", o, nil); err != nil {
				return nil, err
			}
		}
	}

	return changes, nil
}

// identity is the same for two states of an object, in whatever version they are.
func identity(o *unstructured.Unstructured) string {
	return o.GroupVersionKind().Group + " " + fullName(o)
}

func fullName(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// compareObject gives the unified diff of two states of an object, either of which may be nil;
// empty if they are equal.
func compareObject(old, current *unstructured.Unstructured, contextLines int) (string, error) {
	old, current = masked(old, current)

	before, err := text(old)
	if err != nil {
		return "", err
	}

	after, err := text(current)
	if err != nil {
		return "", err
	}

	unified, err := udiff.ToUnified("", "", before, udiff.Strings(before, after), contextLines)
	if err != nil || unified == "" {
		return "", err
	}

	_, hunks, _ := strings.Cut(unified, "@@") // the names of files come before

	return "@@" + hunks, nil
}

func text(o *unstructured.Unstructured) (string, error) {
	if o == nil {
		return "", nil
	}

	data, err := yaml.Marshal(o.Object)

	return string(data), err
}

// masked takes the values out of two states of a Secret and leaves what reports whether they differ.
func masked(old, current *unstructured.Unstructured) (maskedOld, maskedCurrent *unstructured.Unstructured) {
	o := current
	if o == nil {
		o = old
	}

	if o.GetKind() != "Secret" || o.GroupVersionKind().Group != "" {
		return old, current
	}

	return mask(old, current, "masked %d bytes"), mask(current, old, "masked %d bytes, changed")
}

// mask takes the values out of a Secret; changed is put in the place of those that the other does
// not have.
func mask(secret, other *unstructured.Unstructured, changed string) *unstructured.Unstructured {
	if secret == nil {
		return nil
	}

	secret = secret.DeepCopy()
	for _, field := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedMap(secret.Object, field)
		for key, value := range values {
			format := "masked %d bytes"
			if different(value, other, field, key) {
				format = changed
			}

			values[key] = "<" + fmt.Sprintf(format, size(field, value)) + ">"
		}

		if len(values) > 0 {
			secret.Object[field] = values
		}
	}

	return secret
}

// different reports whether the other state of a Secret has another value. One that has none is
// different in any case.
func different(value any, other *unstructured.Unstructured, field, key string) bool {
	if other == nil {
		return false
	}

	there, found, _ := unstructured.NestedFieldNoCopy(other.Object, field, key)

	return found && there != value
}

// size is how long a value of a Secret is.
func size(field string, value any) int {
	text := fmt.Sprint(value)
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && field == "data" {
		return len(decoded)
	}

	return len(text)
}
