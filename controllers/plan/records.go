package plan

import (
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/store"
)

// A stored chart is a ConfigMap in the namespace of the provider, where users may write ConfigMaps. So
// the status of the resource, which only the operator writes, records which charts the operator itself
// has built or fetched, and no other stored chart is used.

// recordsOf returns the records of the charts of a key, newest first. They may have another content ID.
func recordsOf(provider v1alpha2.Provider, key store.Key) []v1alpha2.StoredChart {
	var found []v1alpha2.StoredChart

	for _, record := range provider.GetStatus().StoredCharts {
		if record.Version == key.Version && record.Origin == key.Origin {
			found = append(found, record)
		}
	}

	return found
}

// isRecorded reports whether the operator has built or fetched the chart with a digest.
func isRecorded(provider v1alpha2.Provider, digest string) bool {
	return slices.ContainsFunc(provider.GetStatus().StoredCharts, func(record v1alpha2.StoredChart) bool {
		return record.Digest == digest
	})
}

// Records returns status.storedCharts with this chart as the newest. Charts that are neither in use nor
// in the release's history are left out.
func (c *Chart) Records(status *v1alpha2.ProviderStatus) []v1alpha2.StoredChart {
	own := v1alpha2.StoredChart{Version: c.key.Version, Digest: c.Digest, Origin: c.key.Origin}
	records := []v1alpha2.StoredChart{own}
	keep := inUse(status)

	for _, record := range status.StoredCharts {
		if record != own && slices.Contains(keep, record.Digest) && len(records) < v1alpha2.StoredChartsMaxItems {
			records = append(records, record)
		}
	}

	return records
}

// distrusted ends the origin of a chart whose source was found not to be trusted afterwards.
const distrusted = " (no longer trusted)"

// Distrust returns status.storedCharts after the source of a version was found not to be trusted. The
// charts of the version still are those that the operator has built, for what is installed, but are not
// used for a change before their source is trusted again.
func Distrust(status *v1alpha2.ProviderStatus, version string) []v1alpha2.StoredChart {
	records := slices.Clone(status.StoredCharts)

	for i := range records {
		if records[i].Version == version && !strings.HasSuffix(records[i].Origin, distrusted) {
			records[i].Origin += distrusted
		}
	}

	return records
}

// inUse returns the digests of the chart in use and of those in the release's history.
func inUse(status *v1alpha2.ProviderStatus) []string {
	var digests []string

	if status.Chart != nil {
		digests = append(digests, status.Chart.Digest)
	}

	for _, revision := range status.History {
		digests = append(digests, revision.ChartDigest)
	}

	return digests
}
