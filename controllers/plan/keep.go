package plan

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/controllers/fetch"
)

// keepChart plans the version and chart that the resource has already while its source does not answer,
// no longer has the version, or is no longer known: what is installed does not depend on its source. It returns cause
// if the resource asks for something else by now, unless that is an exact version that it had before, or if the chart
// is not stored.
func (p *Planner) keepChart(ctx context.Context, request Request, plan *Plan, cause error) error {
	provider := request.Provider
	unknown := errors.As(cause, new(*fetch.UnknownProviderError))

	if !source.IsUnavailable(cause) && !unknown && (request.Refresh || !source.IsNotFound(cause)) {
		return cause
	}

	kept, err := p.Charts.passed(ctx, provider)

	switch {
	case kept != nil || err != nil:
	case unknown:
		kept, err = p.Charts.former(ctx, provider)
	case source.IsNotFound(cause):
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
	version := exactVersion(provider)
	if version == "" || fetch.Digest(provider) != "" {
		return nil, nil
	}

	return c.stored(ctx, provider, version, "")
}

// exactVersion returns the version that the resource asks for, with its "v"; empty if it asks for a range.
func exactVersion(provider v1alpha2.Provider) string {
	version := provider.GetSpec().Version
	if !ranges.IsExact(version) {
		return ""
	}

	return "v" + strings.TrimPrefix(version, "v")
}

// former returns the chart of the version that the resource asks for, if its status names it, wherever its namespace
// has fetched it from; nil if there is none. The catalog no longer lists the provider.
func (c *Charts) former(ctx context.Context, provider v1alpha2.Provider) (*content, error) {
	version := cmp.Or(exactVersion(provider), provider.GetStatus().DesiredVersion)
	if version == "" || !asksFor(provider, version) {
		return nil, nil
	}

	return c.find(ctx, provider, version, func(s *store.Stored) bool { return s.IsOf(provider.GetNamespace()) })
}

// asksFor reports whether a version is what the resource asks for, or in its range.
func asksFor(provider v1alpha2.Provider, version string) bool {
	_, err := source.Pick([]source.Version{{Name: version}}, provider.GetSpec().Version, "")
	return err == nil
}
