package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FetchConfiguration says where a provider's components and metadata come from.
//
// +kubebuilder:validation:XValidation:rule="[has(self.selector), has(self.oci), has(self.url), has(self.http), has(self.directory), has(self.image)].exists_one(set, set)",message="set exactly one of selector, oci, url, http, directory and image"
// +kubebuilder:validation:XValidation:rule="!has(self.verify) || has(self.oci) || has(self.image)",fieldPath=".verify",message="verify is for oci and image only: nothing else carries signatures"
// +kubebuilder:validation:XValidation:rule="!has(self.secretRef) || !has(self.selector) && !has(self.directory)",fieldPath=".secretRef",message="secretRef is not for selector and directory: they need no credentials"
type FetchConfiguration struct {
	// selector finds ConfigMaps in the provider's namespace by their labels. Each holds one
	// version: its metadata under the key `metadata` and its components under the key `components`
	// (in `data` as they are, or in `binaryData` as gzip when the annotation
	// `provider.cluster.x-k8s.io/compressed` is `"true"`). The version is the ConfigMap's label
	// `provider.cluster.x-k8s.io/version`, without it the ConfigMap's name. Several versions may
	// match. Secrets with that label and these keys do as well.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// oci is an OCI artifact with the files of a release as layers, e.g.
	// `oci://registry.example.com/capi/infrastructure-aws` or, with a tag,
	// `registry.example.com/capi/infrastructure-aws:v2.11.1`. Without a tag, the version is the
	// tag. `http://` in front of the registry means plain HTTP.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	OCI string `json:"oci,omitempty"`

	// url of the components in the releases of a project on GitHub, e.g.
	// `https://github.com/kubernetes-sigs/cluster-api-provider-aws/releases/latest/infrastructure-components.yaml`,
	// on a GitHub Enterprise server or a mirror with GitHub's paths; or in a generic package of a
	// project on any GitLab, e.g.
	// `https://gitlab.example.com/api/v4/projects/7/packages/generic/aws/v2.11.1/infrastructure-components.yaml`;
	// or on a plain web server, with metadata.yaml beside, e.g.
	// `https://mirror.example.com/aws/v2.11.1/infrastructure-components.yaml`. The version in it
	// stands for any: `version` says which is installed.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`

	// http is a web server's folder with one folder for each version in it, which holds
	// metadata.yaml and the components, e.g. `https://mirror.example.com/capi/infrastructure-aws`
	// for `…/infrastructure-aws/v2.11.1/infrastructure-components.yaml`. A web server cannot list
	// versions: `version` must be exact.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('https://') || self.startsWith('http://')",message="must begin with https:// or http://"
	HTTP string `json:"http,omitempty"`

	// directory in the file system of the operator, in the layout of clusterctl's local repository,
	// e.g. `/providers` for `/providers/infrastructure-aws/v2.11.1/infrastructure-components.yaml`.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="must be an absolute path"
	Directory string `json:"directory,omitempty"`

	// image is a container image that carries the provider's manifests in its folder
	// `/capi-manifests`, e.g. `registry.example.com/capi/cluster-api-aws-controller`. Without a tag
	// or digest, the version is the tag.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Image string `json:"image,omitempty"`

	// secretRef is a Secret with what the source asks for: `username` and `password`, or `token`
	// (also as `GITHUB_TOKEN` or `GITLAB_ACCESS_TOKEN`), or `.dockerconfigjson`; `ca.crt` to trust
	// a server's certificate; `tls.crt` and `tls.key` to show one's own; `proxy` with the URL of a
	// proxy to go through. Credentials are sent to the server that the source names and to no
	// other. Default: a `GITHUB_TOKEN` or `GITLAB_ACCESS_TOKEN` in the Secret with the provider's
	// variables, else no credentials.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// verify asks for a signature of the artifact or image. Nothing unsigned or wrongly signed is
	// used. Default: not asked for.
	// +optional
	Verify *Verification `json:"verify,omitempty"`

	// digest that the content must have, e.g. `sha256:` and 64 hexadecimal digits: of the manifest
	// for oci and image, of the file of components for all others. Default: not checked.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[a-f0-9]{64}$`
	Digest string `json:"digest,omitempty"`
}

// Verification says whose signatures are trusted.
type Verification struct {
	// provider is the program that signs. Default: Cosign.
	// +optional
	// +kubebuilder:default=Cosign
	// +kubebuilder:validation:Enum=Cosign;Notation
	Provider VerificationProvider `json:"provider,omitempty"`

	// secretRef is a Secret with the trusted public keys (Cosign: keys that end in `.pub`) or
	// certificates (Notation: keys that end in `.crt` or `.pem`).
	SecretRef LocalSecretReference `json:"secretRef"`
}

// VerificationProvider is a program that signs artifacts.
type VerificationProvider string

// The programs whose signatures can be verified.
const (
	VerifyCosign   VerificationProvider = "Cosign"
	VerifyNotation VerificationProvider = "Notation"
)
