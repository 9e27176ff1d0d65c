package state

import "github.com/capstan-project/capstan/api/v1alpha2"

// Difference is a part of the inputs of a revision that has changed since.
type Difference string

// The parts of the inputs.
const (
	DifferentVariables Difference = "Variables"
	DifferentManifests Difference = "Manifests"
	DifferentSource    Difference = "Source"
	// DifferentConfiguration is anything else: what the operator is configured with.
	DifferentConfiguration Difference = "Configuration"
)

// IsInput reports whether the difference is in what the resource names: a Secret or ConfigMap.
func (d Difference) IsInput() bool {
	return d != DifferentConfiguration
}

// Differences returns the parts that differ, inputs first, for revisions of different digests.
func Differences(made, now v1alpha2.RevisionInputs) []Difference {
	if made == (v1alpha2.RevisionInputs{}) {
		return []Difference{DifferentConfiguration}
	}

	var found []Difference

	for _, part := range []struct {
		difference Difference
		differs    bool
	}{
		{DifferentVariables, made.Variables != now.Variables},
		{DifferentManifests, made.Manifests != now.Manifests},
		{DifferentSource, made.Source != now.Source},
	} {
		if part.differs {
			found = append(found, part.difference)
		}
	}

	if len(found) == 0 {
		return []Difference{DifferentConfiguration}
	}

	return found
}

// Pin is a revision that stays the desired one although it would be created differently now.
type Pin struct {
	Revision
	// Differences are why; none if it is not known what would be created.
	Differences []Difference
}

// Pin returns the revision that has resulted from the request, if another digest would result from it
// now: only another request changes what was installed. There are two exceptions: changed inputs take
// effect at once if they are watched, and if the revision has never been healthy, because they may be
// the fix. An empty digest means that it is not known what would result; then the revision of an earlier
// request for the same spec stays too.
func (h History) Pin(
	asked v1alpha2.RevisionRequest, digest string, now v1alpha2.RevisionInputs, watched func(Difference) bool,
) (Pin, bool) {
	made, recorded := h.resultOf(asked)
	if !recorded || !made.Request.SameSpec(asked) {
		return Pin{}, false
	}

	if digest == "" {
		return Pin{Revision: made}, true
	}

	if made.Request != asked || !made.Ours() || made.ContentDigest == digest {
		return Pin{}, false
	}

	changed := Differences(made.Inputs, now)
	for _, d := range changed {
		if d.IsInput() && (!made.Healthy || watched(d)) {
			return Pin{}, false
		}
	}

	return Pin{Revision: made, Differences: changed}, true
}
