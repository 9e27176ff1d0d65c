package v1alpha2

// Annotations of other projects that Capstan reads and writes.
const (
	// InjectCAAnnotation names, as "namespace/name", the Certificate whose CA cert-manager injects
	// into a webhook configuration or a CRD.
	InjectCAAnnotation = "cert-manager.io/inject-ca-from"

	// CertificateNameAnnotation names the Certificate that cert-manager has issued a Secret for.
	CertificateNameAnnotation = "cert-manager.io/certificate-name"

	// HelmReleaseNameAnnotation holds the name of the Helm release that owns an object.
	HelmReleaseNameAnnotation = "meta.helm.sh/release-name"

	// HelmReleaseNamespaceAnnotation holds the namespace of the Helm release that owns an object.
	HelmReleaseNamespaceAnnotation = "meta.helm.sh/release-namespace"
)
