package apply

import (
	"slices"

	"github.com/capstan-project/capstan/controllers/object"
)

// Outcome is what became of an object.
type Outcome string

// The outcomes.
const (
	Created Outcome = "Created"
	Updated Outcome = "Updated"
	// Unchanged: it was as it is applied, or is applied only once.
	Unchanged Outcome = "Unchanged"
	// Replaced: it was deleted and recreated, because an immutable field had to change.
	Replaced Outcome = "Replaced"
	// Deleted: the API server has accepted that, even if finalizers still hold it.
	Deleted Outcome = "Deleted"
	// Left: it is no longer part of the release and was not deleted. Its annotation asks to keep it, or its kind is never
	// deleted.
	Left Outcome = "Left"
	// Failed: it could not be made so, or could not be deleted.
	Failed Outcome = "Failed"
)

// Result is what an action did with one object.
type Result struct {
	Object  object.Key
	Outcome Outcome
	// Adopted is true if the object existed and belonged to no release.
	Adopted bool
	// Reason why it was replaced: what the API server said about the change, without values.
	Reason string
	// Removed are fields of others, as JSON pointers, that were invalid beside what is applied.
	Removed []string
	// Snapshot is what was applied; zero for an object that was not.
	Snapshot object.Snapshot
	// Remaining is set for an object that was deleted, and still exists because of its Finalizers.
	Remaining  bool
	Finalizers []string
	// Failure is why it has failed, and what to do about it.
	Failure *ObjectError
}

// Results are those of the objects of an action. It applies each once at most.
type Results []Result

// With returns the results with an outcome.
func (r Results) With(outcome Outcome) Results {
	return slices.DeleteFunc(slices.Clone(r), func(result Result) bool { return result.Outcome != outcome })
}

// Adopted returns the objects that existed and belonged to no release.
func (r Results) Adopted() []object.Key {
	return r.keys(func(result Result) bool { return result.Adopted })
}

// Applied returns the objects that are as the release defines them, changed or not.
func (r Results) Applied() []object.Snapshot {
	var applied []object.Snapshot

	for _, result := range r {
		if result.Snapshot != (object.Snapshot{}) {
			applied = append(applied, result.Snapshot)
		}
	}

	return applied
}

// undeleted returns the objects that could not be deleted, or are not gone yet.
func (r Results) undeleted() []object.Key {
	return r.keys(func(result Result) bool { return result.Outcome == Failed || result.Remaining })
}

// remaining returns the objects that were deleted and are not gone yet.
func (r Results) remaining() []Remaining {
	var remaining []Remaining

	for _, result := range r {
		if result.Remaining && result.Outcome == Deleted {
			remaining = append(remaining, Remaining{Object: result.Object, Finalizers: result.Finalizers})
		}
	}

	return remaining
}

func (r Results) keys(matches func(Result) bool) []object.Key {
	var keys []object.Key

	for _, result := range r {
		if matches(result) && !slices.Contains(keys, result.Object) {
			keys = append(keys, result.Object)
		}
	}

	return keys
}
