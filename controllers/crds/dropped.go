package crds

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds/trial"
)

// findDropped finds the CRDs that lose the provider with the plan. If the chart of the installed revision is unknown,
// these may be all that its chart does not include.
func (a *Applier) findDropped(ctx context.Context, p *Plan) error {
	var names []string

	for _, f := range p.request.Installed {
		if name := crdName(f); !p.request.includes(name) {
			names = append(names, name)
		}
	}

	if p.request.InstalledUnknown {
		names = p.Orphaned
	}

	for _, name := range names {
		live, err := a.getCached(ctx, name)
		if err != nil {
			return err
		}

		if live != nil && !a.isOthers(p.request.Label, live) {
			p.dropped = append(p.dropped, live)
		}
	}

	return nil
}

// isOthers reports whether a CRD belongs to another provider than the one of a label, or will once that one drops it.
func (a *Applier) isOthers(label string, crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, owner := range []string{
		crd.Labels[v1alpha2.ClusterctlProviderLabel], crd.Annotations[v1alpha2.AdoptCRDAnnotation],
	} {
		if owner != "" && owner != label {
			return true
		}
	}

	return a.includedByOthers(label, crd.Name)
}

// Dropped returns the names of the existing CRDs that the installed version of the provider includes, and the planned
// one does not.
func (p *Plan) Dropped() []string {
	names := make([]string, 0, len(p.dropped))
	for _, crd := range p.dropped {
		names = append(names, crd.Name)
	}

	return names
}

// CheckDropped checks whether CRDs that the planned version does not include have objects; see CheckChanges for allow.
// It makes no request if there are no such CRDs.
func (a *Applier) CheckDropped(ctx context.Context, p *Plan, allow []string) (*trial.Report, error) {
	findings, err := a.tryDropped(ctx, p)
	if err != nil {
		return nil, err
	}

	return trial.NewReport(findings, allow), nil
}

// tryDropped returns which objects would be left without the provider. Those of the release itself are deleted with it.
func (a *Applier) tryDropped(ctx context.Context, p *Plan) ([]trial.Finding, error) {
	var all []trial.Finding

	isReleases := func(o *unstructured.Unstructured) bool {
		annotations := o.GetAnnotations()

		return annotations[v1alpha2.HelmReleaseNamespaceAnnotation] == p.request.Namespace &&
			annotations[v1alpha2.HelmReleaseNameAnnotation] == p.request.Release
	}

	for _, crd := range p.dropped {
		drop := trial.Drop{Live: crd, Version: p.request.Version, Ignore: isReleases}

		findings, err := trial.RunDropped(ctx, drop, a.Objects)
		if err != nil {
			return nil, err
		}

		all = append(all, findings...)
	}

	return all, nil
}
