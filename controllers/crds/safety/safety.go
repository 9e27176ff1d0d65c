// Package safety checks changes of CustomResourceDefinitions before they are applied.
//
// Check takes three steps for each CRD. It compares the two definitions by rules, which find
// everything that can break an object or a client. It then tries the change on the existing
// objects: it validates them against the new schemas as the API server will. Finally it judges each
// finding: what could break objects but affects none becomes a warning, and what breaks an existing
// object becomes an error.
//
// CheckCompatibility answers the opposite question: whether a provider's managers can work with
// CRDs that are not applied for them, because they are newer or managed by something else.
//
// Nothing here writes to a cluster, and no message contains values of an object.
package safety

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// concurrency limits how many CRDs are checked at the same time. Each needs memory for one page of
// objects.
const concurrency = 4

// Objects reads the objects of a cluster; see ClusterObjects.
type Objects interface {
	// All returns every object of a resource, in the requested version, with one page of them in
	// memory at a time. A pair with an error is the last one.
	All(ctx context.Context, resource schema.GroupVersionResource) iter.Seq2[*unstructured.Unstructured, error]
}

// Change is the change of one CRD.
type Change struct {
	// Live is the complete CRD in the cluster, with its status. It is nil if the cluster does not
	// have the CRD; creating it is always safe.
	Live *apiextensionsv1.CustomResourceDefinition
	// Desired is the CRD that would be applied.
	Desired *apiextensionsv1.CustomResourceDefinition
}

// Load reads the change of one CRD.
type Load func(ctx context.Context) (Change, error)

// Input is the input of Check.
type Input struct {
	Changes []Change
	// Loads read more changes, which are in memory only while they are checked: the schemas of a CRD with 400 kB
	// of text take several megabytes.
	Loads []Load
	// Comparing bounds how many changes are loaded and compared at a time; nil for no more than those of one
	// Check. Reading objects, which can take as long as a user's webhook wants, does not count.
	Comparing *semaphore.Weighted
	// Objects reads the objects that the changes are tried on. If it is nil, each finding keeps the
	// level of its rule.
	Objects Objects
	// Clients names the known clients of resources in specific versions. A version must not be
	// removed while it has clients.
	Clients map[schema.GroupVersionResource][]string
	// Allow names CRDs whose errors a user has accepted, which makes them warnings; see AllowedCRDs.
	Allow []string
}

// Check returns what the changes would break.
//
// An error means that objects could not be read. It says nothing about the changes; try again
// later. There is one exception: if only a conversion webhook can return objects in some version,
// and that webhook fails, the result is a finding (RuleObjectsUnreadable), since the change may be
// what repairs the webhook. The other findings about that version then keep the level of their
// rule.
func Check(ctx context.Context, in Input) (*Report, error) {
	loads := in.Loads

	for _, change := range in.Changes {
		loads = append(loads, func(context.Context) (Change, error) { return change, nil })
	}

	reports := make([]*Report, len(loads))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)

	for i, load := range loads {
		group.Go(func() (err error) {
			reports[i], err = checkChange(ctx, in, load)
			return err
		})
	}

	if err := group.Wait(); err != nil {
		return nil, err
	}

	report := &Report{Findings: []Finding{}}
	for _, r := range reports {
		report.Findings = append(report.Findings, r.Findings...)
		report.Trials = append(report.Trials, r.Trials...)
	}

	report.allow(in.Allow)
	report.sort()

	return report, nil
}

// checkChange compares, tries and judges one change.
func checkChange(ctx context.Context, in Input, load Load) (*Report, error) {
	outcome, err := compareChange(ctx, in, load)
	if err != nil || outcome == nil {
		return &Report{}, err
	}

	if in.Objects != nil {
		if err := outcome.tryObjects(ctx, in.Objects); err != nil {
			return nil, err
		}
	}

	return outcome.judge(in.Clients), nil
}

// compareChange loads and compares a change; nil if there is nothing to compare.
func compareChange(ctx context.Context, in Input, load Load) (*outcome, error) {
	if in.Comparing != nil {
		if err := in.Comparing.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer in.Comparing.Release(1)
	}

	change, err := load(ctx)
	if err != nil || change.Live == nil {
		return nil, err
	}

	return newOutcome(compare(change.Live, change.Desired)), nil
}
