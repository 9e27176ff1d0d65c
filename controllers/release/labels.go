package release

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"maps"
	"strconv"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Labels of a release's Secret, beside v1alpha2.HolderLabel, DigestLabel and VersionLabel.
const (
	// RevisionLabel repeats the number of the revision that the labels were written for. Helm hands
	// the labels of one revision on to the next: an upgrade by the helm program inherits those of
	// the revision before, a rollback those of the revision it returns to. So Capstan's labels
	// speak of a revision only if this number is the revision's own; if not, somebody else made the
	// revision.
	RevisionLabel = v1alpha2.Prefix + "/revision"

	// ChartDigestLabel holds the digest of the chart's archive, encoded to fit.
	ChartDigestLabel = v1alpha2.Prefix + "/chart-digest"

	// HealthyLabel is "true" once all objects of the revision were healthy: it can be returned to.
	HealthyLabel = v1alpha2.Prefix + "/healthy"

	// RollbackLabel holds, on a revision made by a rollback, the number of the revision that it
	// returned to.
	RollbackLabel = v1alpha2.Prefix + "/rollback-to"

	// FailureLabel says why a revision failed, see Failure.
	FailureLabel = v1alpha2.Prefix + "/failure"
)

// Failure is why a revision failed, as far as what follows depends on it.
type Failure string

// The kinds of failure. None is noted for a revision that another program failed to make.
const (
	// Rejected: the API server refused an object.
	Rejected Failure = "Rejected"
	// Unavailable: a request failed for a reason that may pass by itself.
	Unavailable Failure = "Unavailable"
	// Interrupted: whoever made it was gone before its end.
	Interrupted Failure = "Interrupted"
	// Unhealthy: its objects were not healthy in time.
	Unhealthy Failure = "Unhealthy"
)

// RecordType is the type of the Secrets that Helm keeps its records in.
const RecordType = "helm.sh/release.v1"

// ForeignWork says, by a record's labels, whether another program than Capstan wrote it last.
func ForeignWork(labels map[string]string) bool {
	status := Status(labels["status"])
	own := labels[RevisionLabel] != "" && labels[RevisionLabel] == labels["version"]

	return !own || status == StatusUninstalling || status == StatusUninstalled
}

// Current says, by a record's labels, whether it is one that still counts, and not just history.
func Current(labels map[string]string) bool { return Status(labels["status"]) != StatusSuperseded }

// stamp is what Capstan writes on a revision that it makes.
type stamp struct {
	holder      string
	digest      string
	version     string
	chartDigest string
	rollbackTo  int
}

// on returns labels with the stamp for a revision in place of whatever was inherited.
func (s stamp) on(labels map[string]string, revision int) map[string]string {
	stamped := maps.Clone(labels)
	if stamped == nil {
		stamped = map[string]string{}
	}

	delete(stamped, HealthyLabel)
	delete(stamped, FailureLabel)
	delete(stamped, RollbackLabel)

	if s.rollbackTo != 0 {
		stamped[RollbackLabel] = strconv.Itoa(s.rollbackTo)
	}

	for key, value := range map[string]string{
		RevisionLabel:         strconv.Itoa(revision),
		v1alpha2.HolderLabel:  v1alpha2.LabelValue(s.holder),
		v1alpha2.DigestLabel:  s.digest,
		v1alpha2.VersionLabel: v1alpha2.LabelValue(s.version),
		ChartDigestLabel:      encodeDigest(s.chartDigest),
	} {
		stamped[key] = value
	}

	return stamped
}

// base32 of 32 bytes is 52 characters where hexadecimal digits would be one more than a label
// holds.
var labelEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

const digestAlgorithm, labelAlgorithm = "sha256:", "sha256-"

// encodeDigest makes a label's value of a digest such as "sha256:<64 hex>"; decodeDigest undoes it.
// What is no such digest is empty.
func encodeDigest(digest string) string {
	sum, err := hex.DecodeString(strings.TrimPrefix(digest, digestAlgorithm))
	if err != nil || len(sum) != sha256.Size {
		return ""
	}

	return labelAlgorithm + labelEncoding.EncodeToString(sum)
}

func decodeDigest(label string) string {
	sum, err := labelEncoding.DecodeString(strings.TrimPrefix(label, labelAlgorithm))
	if err != nil || len(sum) != sha256.Size {
		return ""
	}

	return digestAlgorithm + hex.EncodeToString(sum)
}
