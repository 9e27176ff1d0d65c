package plan

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/ranges"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/values"
)

// keepChart plans the version and chart that the resource has already while its source does not answer,
// or no longer has the version: what is installed does not depend on its source. It returns cause if
// the resource asks for something else by now, unless that is an exact version that it had before, or if
// the chart is not stored.
func (p *Planner) keepChart(ctx context.Context, request Request, plan *Plan, cause error) error {
	provider := request.Provider
	if !source.IsUnavailable(cause) && (request.Refresh || !source.IsNotFound(cause)) {
		return cause
	}

	record, found := passedChart(provider)
	if !found && source.IsNotFound(cause) {
		record, found = earlierChart(provider)
	}

	if !found {
		return cause
	}

	stored, err := p.Charts.Installed(ctx, provider, record.Version, record.Digest)
	if err != nil {
		return cause
	}

	schema, err := values.ReadSchema(stored.Chart)
	if err != nil {
		return cause
	}

	key := store.Key{
		Namespace: provider.GetNamespace(),
		Provider:  v1alpha2.Label(provider),
		Version:   record.Version,
		Origin:    record.Origin,
	}

	plan.Version = record.Version
	plan.SourceErr = cause
	plan.Chart = &Chart{Stored: stored, Schema: schema, Outdated: cause, key: key}

	return nil
}

// passedChart returns the record of the chart that has passed all checks for the resource as it is now.
func passedChart(provider v1alpha2.Provider) (v1alpha2.StoredChart, bool) {
	status := provider.GetStatus()
	checked := meta.FindStatusCondition(provider.GetConditions(), v1alpha2.PreflightCheckCondition)

	if status.Chart == nil || checked == nil || checked.Status != metav1.ConditionTrue ||
		checked.ObservedGeneration != provider.GetGeneration() {
		return v1alpha2.StoredChart{}, false
	}

	i := slices.IndexFunc(status.StoredCharts, func(r v1alpha2.StoredChart) bool {
		return r.Digest == status.Chart.Digest && r.Version == status.DesiredVersion &&
			!strings.HasSuffix(r.Origin, distrusted)
	})
	if i < 0 {
		return v1alpha2.StoredChart{}, false
	}

	// `capstan diff` asks for other versions than the resource that was checked.
	return status.StoredCharts[i], asksFor(provider, status.StoredCharts[i].Version)
}

// earlierChart returns the record of the exact version that the resource asks for, if it came from a place whose
// versions may change, such as a ConfigMap. For other places the origin identifies it.
func earlierChart(provider v1alpha2.Provider) (v1alpha2.StoredChart, bool) {
	if !ranges.IsExact(provider.GetSpec().Version) || fetch.Digest(provider) != "" {
		return v1alpha2.StoredChart{}, false
	}

	records := provider.GetStatus().StoredCharts

	i := slices.IndexFunc(records, func(r v1alpha2.StoredChart) bool {
		return r.Origin == "" && asksFor(provider, r.Version)
	})
	if i < 0 {
		return v1alpha2.StoredChart{}, false
	}

	return records[i], true
}

// asksFor reports whether a version is what the resource asks for, or in its range.
func asksFor(provider v1alpha2.Provider, version string) bool {
	_, err := source.Pick([]source.Version{{Name: version}}, provider.GetSpec().Version, "")
	return err == nil
}
