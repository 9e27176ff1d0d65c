package state

// Confirmed is a revision with the digest that its record must have: what has to be known of a revision before objects
// are created, changed or deleted by its record. The zero value is no revision, and confirms no record.
type Confirmed struct{ revision Revision }

// Confirm returns the revision as one to act on. If its digest is not known, it confirms no record.
func (r Revision) Confirm() Confirmed { return Confirmed{r} }

// Confirms reports whether a record with the digest is that of the revision.
func (r Revision) Confirms(digest string) bool { return r.Confirmed() && digest == r.Digest }

// Known reports whether any record of the revision is confirmed.
func (c Confirmed) Known() bool { return c.revision.Confirmed() }

// Number of the revision.
func (c Confirmed) Number() int { return c.revision.Number }

// Confirms reports whether a record with the digest is that of the revision.
func (c Confirmed) Confirms(digest string) bool { return c.revision.Confirms(digest) }

// Of returns the revision as it is known, or as it was read now if its record was written since.
func (c Confirmed) Of(read Revision) Revision {
	if read.Number == c.revision.Number && read.ResourceVersion == c.revision.ResourceVersion {
		return c.revision
	}

	return read
}
