package provider

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// checkRequirements makes sure that the contract of the plan fits the other providers', that its variables have
// values, and that the APIs that it needs are served.
func (r *run) checkRequirements(ctx context.Context) error {
	input := preflight.Input{
		Provider:         r.provider,
		Mapper:           r.target.Client.RESTMapper(),
		Contract:         r.change.plan.Chart.Contract(),
		RequiredKinds:    r.change.plan.Chart.RequiredKinds(),
		MissingVariables: r.change.plan.MissingVariables,
	}

	missing, err := r.Preflight.Installation(ctx, input)

	// Patches may have removed the objects of the missing kinds.
	spec := r.provider.GetSpec()
	if len(missing) > 0 && (spec.Patches != nil || spec.ManifestPatches != nil) {
		record, renderErr := r.target.Releases.Render(r.change.plan.Release)
		if renderErr != nil {
			return renderErr
		}

		input.RequiredKinds = keptKinds(input.RequiredKinds, record.Objects)
		missing, err = r.Preflight.Installation(ctx, input)
	}

	// Until they are served, changes of their CRDs requeue the resource.
	r.target.CRDs.Await(v1alpha2.Label(r.provider), missing...)

	if err != nil {
		return err
	}

	return r.checkServed(ctx, input.Contract, r.change.plan.Patched.CRDs)
}

// checkServed makes sure that core serves what the contract of a version needs, or, if the version is core's, that its
// CRDs serve what the other providers need.
func (r *run) checkServed(ctx context.Context, contract string, definitions []chart.File) error {
	now, err := r.target.CRDs.ServedVersions(ctx, preflight.ClusterCRD)
	if err != nil {
		return err
	}

	if r.Type != v1alpha2.CoreProviderType {
		return r.Preflight.Served(r.provider, contract, now)
	}

	wanted, err := crds.ServedByChart(definitions, preflight.ClusterCRD)
	if err != nil {
		return err
	}

	return r.Preflight.CoreServed(ctx, r.provider, now, wanted)
}

// keptKinds returns those of the kinds, as Kind.version.group, that objects have.
func keptKinds(kinds []string, objects []*unstructured.Unstructured) []string {
	return slices.DeleteFunc(kinds, func(kind string) bool {
		gvk, _ := schema.ParseKindArg(kind)

		return gvk != nil && !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GroupVersionKind() == *gvk
		})
	})
}

// awaitCore ends the change of a provider that waited for core when it was planned. While core is not ready, nothing
// but that matters: dozens of providers would ask their sources each time that something happens to one of them.
func (r *run) awaitCore(ctx context.Context) error {
	if r.memory.awaiting == nil || !r.installed.isGone() || !reflect.DeepEqual(*r.memory.awaiting, r.findAsked()) {
		return nil
	}

	return r.checkCore(ctx)
}

// noteWait remembers that a first installation waits for core, by the result of its change.
func (r *run) noteWait(changed Result) {
	r.memory.awaiting = nil

	if changed.Reason == v1alpha2.WaitingForCoreProviderReadyReason && r.installed.isGone() {
		r.memory.awaiting = new(r.findAsked())
	}
}

// checkCore makes sure that core is ready.
func (r *run) checkCore(ctx context.Context) error {
	return r.Preflight.CoreReady(ctx, r.provider)
}

// checkTurn makes sure that no other provider has to change its version first.
func (r *run) checkTurn(ctx context.Context) error {
	return r.Preflight.Turn(ctx, r.provider, r.change.plan.Chart.Contract())
}
