// Package safety judges changes of CustomResourceDefinitions before they are applied. It looks
// twice. Compare reads the two definitions and finds everything that can break an object or a
// client, each by a rule with a level of its own. Check then reads the objects that exist, and
// validates them by the new schemas as the API server will: what looks dangerous and hurts nobody
// becomes a warning, what looks harmless and breaks a real object becomes a stop. Satisfies answers
// the other way round: whether managers can live with CRDs that are not theirs, because they are
// newer or somebody else's.
//
// Nothing here writes to a cluster, and no message holds an object's values.
package safety

import (
	"context"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// concurrency bounds the CRDs that are judged at the same time, each with one page of objects in
// memory.
const concurrency = 4

// Objects reads the objects of a cluster; see Cluster.
type Objects interface {
	// All gives every object of a resource in the version asked for, one page of them in memory at
	// a time. The pair that holds an error is the last.
	All(ctx context.Context, resource schema.GroupVersionResource) iter.Seq2[*unstructured.Unstructured, error]
}

// Change is one CRD as it is in the cluster and as it is to be.
type Change struct {
	// Live is the whole CRD with its status; nil when the cluster does not have it, which makes
	// every Desired safe.
	Live *apiextensionsv1.CustomResourceDefinition
	// Desired is the CRD that would be applied.
	Desired *apiextensionsv1.CustomResourceDefinition
}

// Input of Check.
type Input struct {
	Changes []Change
	// Objects reads the objects that the changes are tried on. Without it, each finding keeps the
	// level of its rule.
	Objects Objects
	// Clients names, by resource and version, who is known to use a version: it must not go while
	// they do.
	Clients map[schema.GroupVersionResource][]string
	// Allow names CRDs whose stops are warnings, because a person said so; see Allowed.
	Allow []string
}

// Check judges changes by their rules and by the objects that exist. The error says that objects
// could not be read, which tells nothing about the changes: try again later. Objects in a version
// that only a conversion webhook can give, and does not, are no error but a finding
// (RuleUnchecked), since the change may be what brings the webhook back; the other findings of that
// version keep the level of their rule then. The context bounds the time.
func Check(ctx context.Context, in Input) (*Report, error) {
	reports := make([]*Report, len(in.Changes))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)

	for i, c := range in.Changes {
		group.Go(func() (err error) {
			reports[i], err = check(ctx, in, c)
			return err
		})
	}

	if err := group.Wait(); err != nil {
		return nil, err
	}

	report := &Report{Findings: []Finding{}}
	for _, r := range reports {
		report.Findings = append(report.Findings, r.Findings...)
		report.Looks = append(report.Looks, r.Looks...)
	}

	report.allow(in.Allow)
	report.sort()

	return report, nil
}

func check(ctx context.Context, in Input, c Change) (*Report, error) {
	comparison := compare(c.Live, c.Desired)
	if in.Objects != nil {
		if err := comparison.look(ctx, in.Objects); err != nil {
			return nil, err
		}
	}

	comparison.judge(in.Clients)

	return comparison.report(), nil
}

// version is a version of a CRD; nil when it does not have it.
func version(
	crd *apiextensionsv1.CustomResourceDefinition,
	name string,
) *apiextensionsv1.CustomResourceDefinitionVersion {
	i := slices.IndexFunc(
		crd.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name },
	)
	if i < 0 {
		return nil
	}

	return &crd.Spec.Versions[i]
}
