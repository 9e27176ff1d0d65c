package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Finish records with a revision that Jobs have completed.
func Finish(revision *state.Revision, jobs []object.Key) {
	ids := slices.Clone(revision.FinishedJobs)
	for _, job := range jobs {
		ids = append(ids, jobID(job))
	}

	slices.Sort(ids)
	revision.FinishedJobs = slices.Compact(ids)
}

// IsFinished reports whether an object is a Job that is recorded to have completed in a revision.
func IsFinished(revision state.Revision, o object.Key) bool {
	return len(revision.FinishedJobs) > 0 && slices.Contains(revision.FinishedJobs, jobID(o))
}

// jobID returns a short ID of a Job.
func jobID(job object.Key) string {
	const length = 16

	sum := sha256.Sum256([]byte(job.String()))

	return hex.EncodeToString(sum[:length])
}
