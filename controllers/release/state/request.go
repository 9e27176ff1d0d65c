package state

import "k8s.io/apimachinery/pkg/types"

// Request is what a user asked for: the resource as it was, and a reconcile on request. It is recorded
// with the revision that resulted from it. What changes between two requests, such as the operator's
// flags, is therefore not taken for a request.
type Request struct {
	// UID and Generation of the resource.
	UID        types.UID
	Generation int64
	// RequestedAt is the value of the annotation that requests a reconcile, encoded as that of a label.
	RequestedAt string
	// Automatic is the version of an automatic upgrade since the two were last changed, encoded as that of a label;
	// empty if there was none.
	Automatic string
}

// SameUser reports whether both requests are for the same of what users ask for, whatever the operator has upgraded
// since.
func (r Request) SameUser(other Request) bool {
	return r.SameSpec(other) && r.RequestedAt == other.RequestedAt
}

// SameSpec reports whether both requests are for the same spec of the same resource.
func (r Request) SameSpec(other Request) bool {
	return r.UID == other.UID && r.Generation == other.Generation
}

// LastRequest returns the newest request that the history records. The revision is the one that resulted
// from it, or, of another program, the one that it left in place.
func (h History) LastRequest() (Revision, bool) {
	return h.first(func(r Revision) bool { return r.Request != Request{} })
}

// handled reports whether Capstan has created a revision of the release, or left one in place.
func (h History) handled() bool {
	_, exists := h.first(func(r Revision) bool { return r.Ours() || r.Request != Request{} })
	return exists
}

// overtaken reports whether another program has made a revision while Capstan was applying one, so that the objects may
// be those of either.
func (h History) overtaken() bool {
	last, exists := h.first(Revision.Ours)
	return exists && last.Status == StatusFailed && last.Failure == FailureInterrupted
}

// resultOf returns the revision of the newest request like LastRequest, but skips failed automatic upgrades to
// other versions than the one that is asked for: they were given up.
func (h History) resultOf(asked Request) (Revision, bool) {
	return h.first(func(r Revision) bool {
		givenUp := r.Request.Automatic != "" && r.Status == StatusFailed && r.Request.Automatic != asked.Automatic
		return r.Request != Request{} && !givenUp
	})
}
