package plan

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/controllers/fetch"
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

	kept, err := p.Charts.passed(ctx, provider)
	if kept == nil && err == nil && source.IsNotFound(cause) {
		kept, err = p.Charts.earlier(ctx, provider)
	}

	if kept == nil || err != nil {
		return cause
	}

	plan.Version = kept.Version()
	plan.Chart = &Chart{content: kept, Outdated: cause}

	return nil
}

// passed returns the chart that has passed all checks for the resource as it is now; nil if there is none.
func (c *Charts) passed(ctx context.Context, provider v1alpha2.Provider) (*content, error) {
	status := provider.GetStatus()
	checked := meta.FindStatusCondition(provider.GetConditions(), v1alpha2.PreflightCheckCondition)

	// `capstan diff` asks for other versions than the resource that was checked.
	if status.Chart == nil || !asksFor(provider, status.DesiredVersion) ||
		checked == nil || checked.Status != metav1.ConditionTrue ||
		checked.ObservedGeneration != provider.GetGeneration() {
		return nil, nil
	}

	found, err := c.content(ctx, status.Chart.Digest)
	if err != nil || found.Version() != status.DesiredVersion {
		return nil, err
	}

	return found, nil
}

// earlier returns the chart of the exact version that the resource asks for, if it came from a place whose versions may
// change, such as a ConfigMap; nil if there is none. For other places the origin identifies it.
func (c *Charts) earlier(ctx context.Context, provider v1alpha2.Provider) (*content, error) {
	version := provider.GetSpec().Version
	if !ranges.IsExact(version) || fetch.Digest(provider) != "" {
		return nil, nil
	}

	return c.stored(ctx, provider, "v"+strings.TrimPrefix(version, "v"), "")
}

// asksFor reports whether a version is what the resource asks for, or in its range.
func asksFor(provider v1alpha2.Provider, version string) bool {
	_, err := source.Pick([]source.Version{{Name: version}}, provider.GetSpec().Version, "")
	return err == nil
}
