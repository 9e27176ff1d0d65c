package reconcile

import (
	"fmt"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
)

// foreignError reports that the provider's release has the name of one that was created for something
// else. To upgrade that one would delete all of its objects.
type foreignError struct {
	release  string // namespace/name
	revision int
	chart    string
}

func (e *foreignError) Error() string {
	return fmt.Sprintf(
		"Helm release %s was created by another program and is not this provider's: revision %d contains %s; uninstall "+
			"it or move it to another name, or set the annotation %s: \"true\" on this resource to replace it, which "+
			"deletes its objects that the provider does not have",
		e.release, e.revision, e.chart, v1alpha2.AdoptReleaseAnnotation)
}

// belongsToOthers reports whether the release that was observed was created for something else. A
// release of the provider's own chart, which a user has installed with Helm, is adopted. The record is
// nil if it cannot be read.
func (r *run) belongsToOthers(record *release.Record) bool {
	known := r.provider.GetStatus().Release != nil
	allowed := r.provider.GetAnnotations()[v1alpha2.AdoptReleaseAnnotation] == "true"

	if known || allowed || !r.installed.history.Foreign() {
		return false
	}

	return record == nil || record.Provider != v1alpha2.Label(r.provider)
}

// describeChart describes the chart of a record for messages.
func describeChart(record *release.Record) string {
	if record == nil {
		return "a chart that cannot be read"
	}

	return fmt.Sprintf("chart %s %s", record.ChartName, record.ChartVersion)
}
