package crds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/crds/safety"
	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// IncompatibleError is returned for a CRD that is not applied for the provider and that its managers
// cannot work with.
type IncompatibleError struct {
	// Name of the CRD.
	Name string
	// Version of the provider that needs the CRD.
	Version string
	// NewerVersion is the version of the provider that the live CRD was applied for, if the CRD is
	// not applied because it is newer.
	NewerVersion string
	// Missing is true if the CRD does not exist.
	Missing bool
	Report  *safety.Report
}

func (e *IncompatibleError) Error() string {
	if e.NewerVersion != "" {
		return fmt.Sprintf("%s cannot replace %s: CustomResourceDefinitions are never downgraded, and the managers "+
			"of %s cannot work with those of %s: %s",
			e.Version, e.NewerVersion, e.Version, e.NewerVersion, e.Report.Message())
	}

	return fmt.Sprintf("CustomResourceDefinition %s is not managed by Capstan and is incompatible with %s: %s",
		e.Name, e.Version, e.Report.Message())
}

// CheckUnmanaged checks whether the provider can work with the CRDs that the plan does not apply. If
// it cannot, the error is an *IncompatibleError.
func (a *Applier) CheckUnmanaged(ctx context.Context, p *Plan) error {
	for _, u := range p.unmanaged {
		live, err := a.getCached(ctx, u.name)
		if err != nil {
			return err
		}

		report, err := a.checkCompatibility(ctx, u.definition, live)
		if err != nil {
			return err
		}

		ignored, err := a.errorsCanBeIgnored(ctx, u, live, report)
		if err != nil {
			return err
		}

		if report.HasErrors() && !ignored {
			return &IncompatibleError{
				Name:         u.name,
				Version:      p.request.Version,
				NewerVersion: u.newerVersion,
				Missing:      live == nil,
				Report:       report,
			}
		}
	}

	return nil
}

// NewerVersion returns the version of the provider that one of its live CRDs was applied for, if it is
// higher than the given version; empty if there is no such CRD. It reads from the cache only.
func (a *Applier) NewerVersion(ctx context.Context, label, version string) (string, error) {
	list, err := a.listApplied(ctx, label)
	if err != nil {
		return "", err
	}

	for i := range list {
		if applied := list[i].Annotations[versionAnnotation]; isNewer(applied, version) {
			return applied, nil
		}
	}

	return "", nil
}

// errorsCanBeIgnored reports whether a newer CRD is incompatible only in fields, and has no objects
// in which the older managers could lose or miss them.
func (a *Applier) errorsCanBeIgnored(
	ctx context.Context,
	u unmanagedCRD,
	live *apiextensionsv1.CustomResourceDefinition,
	report *safety.Report,
) (bool, error) {
	if u.newerVersion == "" || live == nil || !onlyFieldErrors(report) {
		return false, nil
	}

	exist, err := a.objectsExist(ctx, live)

	return !exist, err
}

// onlyFieldErrors reports whether a report has errors, and all of them are about fields.
func onlyFieldErrors(report *safety.Report) bool {
	notAboutField := func(f safety.Finding) bool { return f.Path == "" }

	return report.HasErrors() && !slices.ContainsFunc(report.WithLevel(safety.Error), notAboutField)
}

// objectsExist reports whether there are objects of a CRD.
func (a *Applier) objectsExist(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	resource := versions.Resource(crd, versions.StorageName(crd))

	list, err := a.Metadata.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false, fmt.Errorf("list %s: %w", crd.Name, err)
	}

	return len(list.Items) > 0, nil
}

// compatibilityKey identifies the input of a compatibility check: a definition and the state of a
// live CRD, which is empty if the CRD does not exist.
type compatibilityKey struct {
	name, digest   string
	uid            types.UID
	generation     int64
	storedVersions string
}

// checkCompatibility checks one CRD, once for each of its states.
func (a *Applier) checkCompatibility(
	ctx context.Context,
	d definition,
	live *apiextensionsv1.CustomResourceDefinition,
) (*safety.Report, error) {
	key := compatibilityKey{name: d.name, digest: d.digest}
	if live != nil {
		key.uid = live.UID
		key.generation = live.Generation
		key.storedVersions = strings.Join(live.Status.StoredVersions, ",")
	}

	if report, found := a.compatibility.get(key); found {
		return report, nil
	}

	required, err := d.parse()
	if err != nil {
		return nil, err
	}

	if live != nil {
		if live, err = a.getComplete(ctx, d.name); err != nil {
			return nil, err
		}
	}

	report := safety.CheckCompatibility(required, live)
	a.compatibility.add(key, report)

	return report, nil
}
