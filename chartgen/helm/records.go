package helm

import "fmt"

// RecordType is the type of the Secrets in which Helm stores revisions.
const RecordType = "helm.sh/release.v1"

// RecordName returns the name of the Secret with the record of a revision.
func RecordName(release string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision)
}
