package state

import "github.com/capstan-project/capstan/api/v1alpha2"

// LastRequest returns the newest request that the history records. The revision is the one that resulted
// from it, or, of another program, the one that it left in place.
func (h History) LastRequest() (Revision, bool) {
	return h.first(func(r Revision) bool { return r.Request != (v1alpha2.RevisionRequest{}) })
}

// handled reports whether Capstan has created a revision of the release, or left one in place.
func (h History) handled() bool {
	_, exists := h.first(func(r Revision) bool { return r.Ours() || r.Request != (v1alpha2.RevisionRequest{}) })
	return exists
}

// overtaken reports whether another program has made a revision while Capstan was applying one, so that the objects may
// be those of either.
func (h History) overtaken() bool {
	last, exists := h.first(Revision.Ours)
	return exists && last.Status == v1alpha2.RevisionFailed && last.Failure == v1alpha2.FailureInterrupted
}

// resultOf returns the revision of the newest request like LastRequest, but skips failed automatic upgrades to
// other versions than the one that is asked for: they were given up.
func (h History) resultOf(asked v1alpha2.RevisionRequest) (Revision, bool) {
	return h.first(func(r Revision) bool {
		upgrade := r.Request.AutomaticUpgrade
		givenUp := upgrade != "" && upgrade != asked.AutomaticUpgrade && r.Status == v1alpha2.RevisionFailed

		return r.Request != (v1alpha2.RevisionRequest{}) && !givenUp
	})
}
