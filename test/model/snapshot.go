package model

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Record is a revision of the release, and what it was created from.
type Record struct {
	state.Revision
	Content
	// Left is set while objects exist that the revision does not have.
	Left bool
}

// deployed reports whether the revision is the deployed one.
func (r Record) deployed() bool { return r.Status == v1alpha2.RevisionDeployed }

// waits reports whether objects wait for the manager of a provider that is paused.
func (r Record) waits() bool { return r.Staged() && r.deployed() && r.Content.Paused }

// runs reports whether the revision is deployed, and healthy once its manager has started.
func (r Record) runs() bool {
	return r.deployed() && (r.Content.Paused || Find(r.Content.Version).Flaw != NeverHealthy)
}

// Snapshot is what can be seen of a provider.
type Snapshot struct {
	// Records of the release, newest first.
	Records []Record
	// Objects of the provider in the cluster, by name. CRDs are not among them.
	Objects map[string]Object
	// Stored are the versions that the CRD's objects may be stored in, the storage version first. It is
	// empty if there is no CRD.
	Stored []string
	// Contract is that of the status.
	Contract string
	// Ready and Stalled are conditions of the status; empty if they were not read.
	Ready, Stalled metav1.ConditionStatus
	Now            time.Time
}

// newest returns the newest record, if there is any.
func (s *Snapshot) newest() (Record, bool) {
	if len(s.Records) == 0 {
		return Record{}, false
	}

	return s.Records[0], true
}

// HelmTarget returns the revision that `helm rollback` returns to, counted from the one before the newest
// one, if there is any that the API server accepts.
func (s *Snapshot) HelmTarget(back int) (Record, bool) {
	if len(s.Records) <= back+1 {
		return Record{}, false
	}

	target := s.Records[back+1]

	return target, Find(target.Content.Version).Flaw != Refused
}

// find returns the record with a number, if there is one.
func (s *Snapshot) find(number int) (Record, bool) {
	i := slices.IndexFunc(s.Records, func(r Record) bool { return r.Number == number })
	if i < 0 {
		return Record{}, false
	}

	return s.Records[i], true
}

// deployed returns how many revisions are deployed.
func (s *Snapshot) deployed() int {
	count := 0

	for _, r := range s.Records {
		if r.deployed() {
			count++
		}
	}

	return count
}

// runs reports whether the objects are exactly those of the content.
func (s *Snapshot) runs(c Content) bool { return maps.Equal(s.Objects, c.Objects()) }

// convertible reports whether the managers of a version can convert all objects of the CRD.
func (s *Snapshot) convertible(version string) bool {
	return !slices.ContainsFunc(s.Stored, func(stored string) bool { return !Find(version).Converts(stored) })
}
