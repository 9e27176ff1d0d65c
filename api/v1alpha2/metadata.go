package v1alpha2

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Prefix is the domain of Capstan's own finalizer, labels and annotations.
const Prefix = "capstan.dev"

// FieldOwner is the field manager of everything Capstan writes.
const FieldOwner = "capstan"

// Finalizer blocks the deletion of a resource until its provider has been removed.
const Finalizer = Prefix + "/provider"

// Labels of the charts and Helm releases that Capstan stores in the cluster. Values are encoded
// with LabelValue.
const (
	// ProviderLabel holds clusterctl's label of the provider, e.g. "infrastructure-aws".
	ProviderLabel = Prefix + "/provider"

	// VersionLabel holds the provider's version, e.g. "v2.11.1".
	VersionLabel = Prefix + "/version"
)

// PausedReplicasAnnotation holds, on a Deployment of a paused provider, the number of replicas to
// restore.
const PausedReplicasAnnotation = Prefix + "/paused-replicas"

// DriftAnnotation excludes an object of a release from drift detection if its value is DriftIgnore.
// It can be set on the object in the cluster or, with a patch, in the release.
const (
	DriftAnnotation = Prefix + "/drift"
	DriftIgnore     = "Ignore"
)

// HealthyWhenAnnotation lists what the status of an object of a release must have before the object is healthy,
// separated by commas: types of conditions that must be True, and "observedGeneration" for a status that is up to date.
const HealthyWhenAnnotation = Prefix + "/healthy-when"

// Annotations of a release's objects that determine their order: integers from -32768 to 32767.
const (
	// ApplyOrderAnnotation is when the object is applied: after all objects with lower values, once these are healthy.
	// Default: 0; objects of the kinds that the provider's own CRDs define follow all others.
	ApplyOrderAnnotation = Prefix + "/apply-order"

	// DeleteOrderAnnotation is when the object is deleted: after all objects with lower values, once these are gone.
	// Default: the reverse of ApplyOrderAnnotation.
	DeleteOrderAnnotation = Prefix + "/delete-order"
)

// Annotations of a release's objects with the policies of PoliciesSpec.
const (
	AdoptionPolicyAnnotation         = Prefix + "/adoption-policy"
	UpdatePolicyAnnotation           = Prefix + "/update-policy"
	DeletePolicyAnnotation           = Prefix + "/delete-policy"
	RecreatePolicyAnnotation         = Prefix + "/recreate-policy"
	MissingNamespacePolicyAnnotation = Prefix + "/missing-namespace-policy"
)

// OrphanedByAnnotation holds, on an object that its release has left behind, that release as namespace/name. The
// release takes the object back, whatever the adoption policy is.
const OrphanedByAnnotation = Prefix + "/orphaned-by"

// Labels of clusterctl. The provider contract requires them on every object of a provider.
const (
	// ClusterctlLabel has an empty value. `clusterctl move` uses it to find the kinds to move.
	ClusterctlLabel = "clusterctl.cluster.x-k8s.io"

	// ClusterctlProviderLabel holds the provider's label, e.g. "infrastructure-aws".
	ClusterctlProviderLabel = "cluster.x-k8s.io/provider"
)

// ManagedByLabel is Kubernetes' recommended label. Its value is FieldOwner on stored charts and on the objects of
// clusterctl's inventory that Capstan keeps, and Helm on the objects of a release.
const ManagedByLabel = "app.kubernetes.io/managed-by"

// ReconcileRequestAnnotation requests a reconcile that reads the source, the Secret and the cluster
// again, whenever its value changes. It is Flux's annotation, so that `flux` and other programs that
// use it work. status.lastHandledReconcileAt reports the last value that was handled.
const ReconcileRequestAnnotation = "reconcile.fluxcd.io/requestedAt"

// AdoptCRDAnnotation transfers the ownership of a CRD to the provider whose label is its value.
const AdoptCRDAnnotation = Prefix + "/adopt"

// ResolvedVersionAnnotation on a provider resource is the version that its range was resolved to, and
// GivenUpVersionAnnotation the one that was given up. The operator writes both, and reads them if the
// status was lost: a backup may have been restored without it.
const (
	ResolvedVersionAnnotation = Prefix + "/resolved-version"
	GivenUpVersionAnnotation  = Prefix + "/given-up-version"
)

// AdoptReleaseAnnotation on a provider resource allows the operator to take over a Helm release that has the name of
// the provider's release and was created for something else, if its value is "true".
const AdoptReleaseAnnotation = Prefix + "/adopt-release"

// InstallBesideAnnotation lists, on a provider resource and separated by commas, namespaces with an apparent
// installation of the provider, or of cluster-api-operator, that is none: a Helm release or objects that anyone may
// have created. They prevent an installation only without this annotation. A resource that has installed the provider
// always prevents it. If the list has the operator's own namespace, a provider may be installed there.
const InstallBesideAnnotation = Prefix + "/install-beside"

// AllowUnsafeCRDAnnotation lists, on a provider resource and separated by commas, the CRDs whose
// changes by one version of the provider are applied even if they are considered unsafe, each as
// name@version, e.g. "machines.cluster.x-k8s.io@v1.11.0". The changes of later versions are checked.
const AllowUnsafeCRDAnnotation = Prefix + "/allow-unsafe-crd"

// Annotations of a provider resource that control how the provider is removed. They take effect
// only with the value "true".
const (
	// DeleteInUseAnnotation removes the provider even if objects of its kinds exist. They are kept,
	// but no controller manages them any longer.
	DeleteInUseAnnotation = Prefix + "/delete-in-use"

	// DeleteCRDsAnnotation also deletes the provider's CRDs, once no objects of their kinds are
	// left.
	DeleteCRDsAnnotation = Prefix + "/delete-crds"

	// KeepInstalledAnnotation leaves the provider as it is, without the release: its objects lose the marks of
	// Helm, its CRDs those of Capstan, and the release's records are deleted. It takes precedence over the others.
	KeepInstalledAnnotation = Prefix + "/keep-installed"

	// DeleteNamespaceAnnotation also deletes the resource's namespace, once it contains no other
	// provider, Helm release or provider object.
	DeleteNamespaceAnnotation = Prefix + "/delete-namespace"
)

// cluster-api-operator's contract for ConfigMaps that hold one version of a provider.
const (
	// ConfigMapVersionLabel holds the version. Default: the ConfigMap's name.
	ConfigMapVersionLabel = "provider.cluster.x-k8s.io/version"

	// ConfigMapCompressedAnnotation is "true" if the components are stored with gzip in binaryData
	// instead of as text in data.
	ConfigMapCompressedAnnotation = "provider.cluster.x-k8s.io/compressed"

	// ConfigMapMetadataKey is the key of metadata.yaml, always in data.
	ConfigMapMetadataKey = "metadata"

	// ConfigMapComponentsKey is the key of the components.
	ConfigMapComponentsKey = "components"

	// ConfigMapManifestsKey is the key of the YAML in the ConfigMap of spec.additionalManifests.
	ConfigMapManifestsKey = "manifests"
)

// Asks reports whether a resource carries an annotation with the value "true".
func Asks(p Provider, annotation string) bool { return p.GetAnnotations()[annotation] == "true" }

// InstallsBeside reports whether the annotation InstallBesideAnnotation of a resource lists a namespace, so that
// apparent installations in it are ignored.
func InstallsBeside(p Provider, namespace string) bool {
	for listed := range strings.SplitSeq(p.GetAnnotations()[InstallBesideAnnotation], ",") {
		if strings.TrimSpace(listed) == namespace {
			return true
		}
	}

	return false
}

// InstallBesideHint returns the advice for messages to ignore an apparent installation in a namespace.
func InstallBesideHint(namespace string) string {
	return "; if it is something else, set the annotation " + InstallBesideAnnotation + ": " + namespace +
		" on this resource"
}

// LabelValue returns s if it is a valid label value. Otherwise (it is longer than 63 characters,
// like SHA-256 digests, or has invalid characters, like the + of build metadata) it returns the
// valid part of s and a hash of s, so that different strings have different values.
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
