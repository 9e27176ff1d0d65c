package helm

import "fmt"

// RecordType is the type of the Secrets in which Helm stores revisions.
const RecordType = "helm.sh/release.v1"

// MaxRecord is how large the operator lets the record of a revision be when it is created, in bytes: 90 % of a Secret.
// It may grow later, by descriptions for example.
const MaxRecord = (1 << 20) / 10 * 9

// RecordName returns the name of the Secret with the record of a revision.
func RecordName(release string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision)
}
