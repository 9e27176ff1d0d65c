package v1alpha2

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Prefix is shared by the finalizer and by all labels and annotations that are Capstan's own.
const Prefix = "capstan.dev"

// FieldOwner is the field manager of everything that Capstan writes.
const FieldOwner = "capstan"

// Finalizer keeps a resource until its provider has been removed.
const Finalizer = Prefix + "/provider"

// Labels of what Capstan keeps in the cluster: charts and Helm releases. Values go through
// LabelValue.
const (
	// ProviderLabel holds clusterctl's label of the provider, e.g. "infrastructure-aws".
	ProviderLabel = Prefix + "/provider"

	// VersionLabel holds the provider's version, e.g. "v2.11.1".
	VersionLabel = Prefix + "/version"

	// ContentIDLabel holds the content ID of the bundle that a chart was made from.
	ContentIDLabel = Prefix + "/content-id"

	// OriginLabel holds where the bundle came from, when that cannot change there: then nobody
	// fetches it again.
	OriginLabel = Prefix + "/origin"

	// HolderLabel names, on a Helm release, the operator process that works on it: its leader
	// election identity.
	HolderLabel = Prefix + "/holder"

	// DigestLabel holds, on a Helm release, the digest of all that the revision was made from. An
	// equal digest means that there is nothing to do.
	DigestLabel = Prefix + "/digest"
)

// PausedReplicasAnnotation holds, on a Deployment of a paused provider, how many replicas it has
// when it is not paused.
const PausedReplicasAnnotation = Prefix + "/paused-replicas"

// DriftAnnotation excludes an object of a release from drift detection when its value is
// DriftIgnore: on the object in the cluster, or, by a patch, in the release.
const (
	DriftAnnotation = Prefix + "/drift"
	DriftIgnore     = "Ignore"
)

// Labels of clusterctl, by the provider contract on every object of a provider.
const (
	// ClusterctlLabel is empty; `clusterctl move` finds the kinds that it moves by it.
	ClusterctlLabel = "clusterctl.cluster.x-k8s.io"

	// ClusterctlProviderLabel holds the provider's label, e.g. "infrastructure-aws".
	ClusterctlProviderLabel = "cluster.x-k8s.io/provider"
)

// ReconcileRequestAnnotation asks, whenever its value changes, to look at everything anew: source,
// Secret and cluster. It is Flux's, so that `flux` and other programs that know it work. The answer
// is status.lastHandledReconcileAt.
const ReconcileRequestAnnotation = "reconcile.fluxcd.io/requestedAt"

// AdoptCRDAnnotation hands a CRD that something else looked after over to the provider whose label
// it holds.
const AdoptCRDAnnotation = Prefix + "/adopt"

// AllowUnsafeCRDAnnotation names, on a provider's resource and separated by commas, the CRDs whose
// changes are to be applied although they are judged to be unsafe. It is for a person who knows
// better, once.
const AllowUnsafeCRDAnnotation = Prefix + "/allow-unsafe-crd"

// Annotations of a provider's resource that say how it is removed when it is deleted. Only the
// value "true" counts.
const (
	// DeleteInUseAnnotation removes the provider though objects of its kinds exist. They stay, with
	// nobody to look after them.
	DeleteInUseAnnotation = Prefix + "/delete-in-use"

	// DeleteCRDsAnnotation deletes the provider's CRDs too, once no objects of their kinds are
	// left.
	DeleteCRDsAnnotation = Prefix + "/delete-crds"

	// DeleteNamespaceAnnotation deletes the resource's namespace too, once nothing else that
	// Capstan knows of lives in it.
	DeleteNamespaceAnnotation = Prefix + "/delete-namespace"
)

// cluster-api-operator's contract for ConfigMaps that hold one version of a provider.
const (
	// ConfigMapVersionLabel holds the version. Without it, the ConfigMap's name is the version.
	ConfigMapVersionLabel = "provider.cluster.x-k8s.io/version"

	// ConfigMapTypeLabel holds the provider type's name, see ProviderType.Name. It is informative.
	ConfigMapTypeLabel = "provider.cluster.x-k8s.io/type"

	// ConfigMapNameLabel holds the provider's name. It is informative.
	ConfigMapNameLabel = "provider.cluster.x-k8s.io/name"

	// ConfigMapCompressedAnnotation is "true" when the components are gzip in binaryData instead of
	// text in data.
	ConfigMapCompressedAnnotation = "provider.cluster.x-k8s.io/compressed"

	// ConfigMapMetadataKey is the key of metadata.yaml, always in data.
	ConfigMapMetadataKey = "metadata"

	// ConfigMapComponentsKey is the key of the components.
	ConfigMapComponentsKey = "components"

	// ConfigMapManifestsKey is the key of the YAML in the ConfigMap of spec.additionalManifests.
	ConfigMapManifestsKey = "manifests"
)

// LabelValue returns s if it can be a label's value. Otherwise (longer than 63 characters, as
// sha256 digests are, or with characters such as the + of a version's build) it returns what can be
// kept of s and a hash, which is different for a different s.
func LabelValue(s string) string {
	if len(validation.IsValidLabelValue(s)) == 0 {
		return s
	}

	const hashLength = 16

	sum := sha256.Sum256([]byte(s))
	kept := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}

		return '_'
	}, s)
	kept = kept[:min(len(kept), validation.LabelValueMaxLength-hashLength-1)]

	return strings.TrimLeft(kept+"."+hex.EncodeToString(sum[:])[:hashLength], "._-")
}
