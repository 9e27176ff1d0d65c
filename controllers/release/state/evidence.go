package state

import "slices"

// Evidence is what tells that a revision is the resource's; zero for nothing. Only package foreign finds evidence.
type Evidence struct {
	// digests of the revision, of which the record must have one.
	digests []string
	// any is true if a user accepts the record, whatever it contains.
	any bool
}

// KnownDigests is the evidence for records with one of the digests.
func KnownDigests(digests []string) Evidence { return Evidence{digests: slices.Clone(digests)} }

// AnyRecord is the evidence for a record that a user accepts, whatever it contains.
func AnyRecord() Evidence { return Evidence{any: true} }

// Confirms reports whether a record with the digest is the resource's.
func (e Evidence) Confirms(digest string) bool {
	return e.any || digest != "" && slices.Contains(e.digests, digest)
}

// Confirmed is a revision for which there is evidence: what has to be known of a revision before objects are created,
// changed or deleted by its record. The zero value is no revision, and confirms no record.
type Confirmed struct{ revision Revision }

// Confirm returns the revision as one to act on. Without evidence it confirms no record.
func (r Revision) Confirm() Confirmed { return Confirmed{r} }

// Known reports whether any record of the revision is confirmed.
func (c Confirmed) Known() bool { return c.revision.Known.any || len(c.revision.Known.digests) > 0 }

// Number of the revision.
func (c Confirmed) Number() int { return c.revision.Number }

// Confirms reports whether a record of the revision is the resource's.
func (c Confirmed) Confirms(digest string) bool { return c.revision.Known.Confirms(digest) }

// Of returns the revision as it is known, or as it was read now if its record was written since.
func (c Confirmed) Of(read Revision) Revision {
	if read.Number == c.revision.Number && read.ResourceVersion == c.revision.ResourceVersion {
		return c.revision
	}

	return read
}
