package state

// Basis is what a revision was created from besides the resource itself: the content of Secrets and
// ConfigMaps, and the operator. It is recorded with the revision, because all of that changes
// without a Request. Fields are empty for what was not used, and all are if the basis is unknown.
type Basis struct {
	// Variables is the digest of the values of the variables in use, from the Secret.
	Variables string
	// Manifests is the digest of the additional manifests, from their ConfigMap.
	Manifests string
	// Source is the digest of the provider's components and metadata.
	Source string

	// ImageRegistry and ImageOverrides are digests of the operator's settings of these names, and Managers is
	// that of its settings for managers.
	ImageRegistry, ImageOverrides, Managers string
}

// Difference is a part of a Basis that differs from that of a revision.
type Difference string

// The parts of a basis.
const (
	DifferentVariables      Difference = "Variables"
	DifferentManifests      Difference = "Manifests"
	DifferentSource         Difference = "Source"
	DifferentImageRegistry  Difference = "ImageRegistry"
	DifferentImageOverrides Difference = "ImageOverrides"
	DifferentManagers       Difference = "Managers"
	// DifferentConfiguration is anything else: what the operator is configured with.
	DifferentConfiguration Difference = "Configuration"
)

// IsInput reports whether the difference is in what the resource names: a Secret or ConfigMap.
func (d Difference) IsInput() bool {
	return d == DifferentVariables || d == DifferentManifests || d == DifferentSource
}

// Differences returns the parts that differ, inputs first, for revisions of different digests.
func (b Basis) Differences(now Basis) []Difference {
	if b == (Basis{}) {
		return []Difference{DifferentConfiguration}
	}

	var differences []Difference

	for _, part := range []struct {
		difference Difference
		differs    bool
	}{
		{DifferentVariables, b.Variables != now.Variables},
		{DifferentManifests, b.Manifests != now.Manifests},
		{DifferentSource, b.Source != now.Source},
		{DifferentImageRegistry, b.ImageRegistry != now.ImageRegistry},
		{DifferentImageOverrides, b.ImageOverrides != now.ImageOverrides},
		{DifferentManagers, b.Managers != now.Managers},
	} {
		if part.differs {
			differences = append(differences, part.difference)
		}
	}

	if len(differences) == 0 {
		return []Difference{DifferentConfiguration}
	}

	return differences
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
func (h History) Pin(asked Request, digest string, now Basis, watched func(Difference) bool) (Pin, bool) {
	made, recorded := h.resultOf(asked)
	if !recorded || !made.Request.SameSpec(asked) {
		return Pin{}, false
	}

	if digest == "" {
		return Pin{Revision: made}, true
	}

	if made.Request != asked || !made.Ours() || made.Digest == digest {
		return Pin{}, false
	}

	differences := made.Basis.Differences(now)
	for _, d := range differences {
		if d.IsInput() && (!made.Healthy || watched(d)) {
			return Pin{}, false
		}
	}

	return Pin{Revision: made, Differences: differences}, true
}
