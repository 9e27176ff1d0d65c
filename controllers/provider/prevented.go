package provider

import (
	"context"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/offers"
)

// prevented is an automatic upgrade that a check has prevented, and what the check depended on.
type prevented struct {
	offers.Prevented

	basis basis
}

// holds reports whether the check would prevent the upgrade to a version again.
func (p prevented) holds(version string, basis basis, now time.Time) bool {
	return p.Version == version && now.Before(p.Until) && reflect.DeepEqual(p.basis, basis)
}

// basis is what the checks of an automatic upgrade depend on, as far as its changes wake the resource, and it can be
// read from caches. What an account may do, or what the API server refuses, is not.
type basis struct {
	asked

	// revision is the newest one of the release.
	revision int
	// crds are the resource versions of the provider's CRDs.
	crds map[string]string
	// others are the other providers of the cluster.
	others map[string]standing
}

// asked is what a plan depends on, as far as its changes wake the resource.
type asked struct {
	// Of the resource. An annotation may allow what a check prevents.
	generation  int64
	annotations map[string]string
	// inputs are the resource versions of the ConfigMaps and Secrets that the resource uses.
	inputs map[access.Reference]string
}

// findAsked finds out what a plan depends on.
func (r *run) findAsked() asked {
	return asked{
		generation:  r.provider.GetGeneration(),
		annotations: r.provider.GetAnnotations(),
		inputs:      r.findInputs(),
	}
}

// standing is what the checks of an automatic upgrade depend on of another provider.
type standing struct {
	generation        int64
	version, contract string
}

// findBasis finds out what the checks of an automatic upgrade depend on.
func (r *run) findBasis(ctx context.Context) (basis, error) {
	found := basis{asked: r.findAsked(), revision: r.installed.Newest.Number, others: map[string]standing{}}

	others, err := r.Preflight.Others(ctx, r.provider)
	if err != nil {
		return basis{}, err
	}

	for _, other := range others {
		status := other.GetStatus()
		found.others[v1alpha2.FullName(other)] = standing{
			other.GetGeneration(), ptr.Deref(status.InstalledVersion, ""), ptr.Deref(status.Contract, ""),
		}
	}

	found.crds, err = r.target.CRDs.Versions(ctx, v1alpha2.Label(r.provider))

	return found, err
}

// findInputs returns the resource versions of the ConfigMaps and Secrets that the resource uses.
func (r *run) findInputs() map[access.Reference]string {
	inputs := map[access.Reference]string{}

	for _, kind := range []string{"ConfigMap", "Secret"} {
		uses := func(m *metav1.PartialObjectMetadata) bool { return access.Uses(r.provider, kind, m) }

		for _, namespace := range append(namedNamespaces(r.provider), r.provider.GetNamespace()) {
			found, _ := r.Watches.Find(kind, namespace, uses)
			for _, m := range found {
				named := access.Reference{Kind: kind, NamespacedName: client.ObjectKeyFromObject(m)}
				inputs[named] = m.ResourceVersion
			}
		}
	}

	return inputs
}
