package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// finishedJobPrefix begins the labels of a revision's Jobs that have completed: a digest of the Job
// follows, and the value is the number of the revision. A label with another number was copied from
// another revision, which ran the Job for itself.
const finishedJobPrefix = v1alpha2.Prefix + "/finished-job-"

// FinishedJobLabels returns the labels which record that Jobs of a revision have completed.
func FinishedJobLabels(revision int, jobs []object.Key) map[string]string {
	labels := map[string]string{}
	for _, job := range jobs {
		labels[finishedJobPrefix+jobID(job)] = strconv.Itoa(revision)
	}

	return labels
}

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

// finishedJobs returns the IDs of the Jobs of a revision that have completed, by its labels.
func finishedJobs(labels map[string]string, revision int) []string {
	var ids []string

	for label, number := range labels {
		if id, ok := strings.CutPrefix(label, finishedJobPrefix); ok && number == strconv.Itoa(revision) {
			ids = append(ids, id)
		}
	}

	slices.Sort(ids)

	return ids
}

// jobID returns an ID of a Job that fits into the name of a label.
func jobID(job object.Key) string {
	const length = 16

	sum := sha256.Sum256([]byte(job.String()))

	return hex.EncodeToString(sum[:length])
}
