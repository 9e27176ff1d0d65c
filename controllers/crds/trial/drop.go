package trial

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/controllers/crds/versions"
	"github.com/capstan-project/capstan/controllers/object"
)

// Drop is a CRD that a version of its provider does not include.
type Drop struct {
	// Live is the CRD in the cluster. It needs no schemas.
	Live *apiextensionsv1.CustomResourceDefinition
	// Version of the provider that does not include it, e.g. "v1.15.0".
	Version string
	// Ignore reports whether an object does not count.
	Ignore func(*unstructured.Unstructured) bool
}

// RunDropped returns a finding about the objects of a CRD that is dropped; none if there are no objects. It returns the
// same errors as Run.
func RunDropped(ctx context.Context, drop Drop, objects Objects) ([]Finding, error) {
	from := versions.Preferred(drop.Live)
	if from == nil || apihelpers.IsCRDConditionFalse(drop.Live, apiextensionsv1.Established) {
		return nil, nil
	}

	found := findings{crd: drop.Live.Name}
	left := Problem{
		Message: "not in " + drop.Version + ", so nothing reconciles, validates or converts these objects, " +
			"nor removes their finalizers",
		Remedy: "delete them, or replace them by objects of other kinds, while the installed version runs",
	}

	for o, err := range objects.All(ctx, versions.Resource(drop.Live, from.Name)) {
		switch {
		case object.IsConversion(err):
			return []Finding{unread(drop.Live.Name, from.Name, err)}, nil
		case err != nil:
			return nil, fmt.Errorf("count the %s, which are not in %s: %w", drop.Live.Name, drop.Version, err)
		case drop.Ignore(o):
			continue
		}

		if found.record(o, []Problem{left}); found.broken == maxBroken {
			break
		}
	}

	for i := range found.all {
		found.all[i].Dropped = true
	}

	return found.all, nil
}
