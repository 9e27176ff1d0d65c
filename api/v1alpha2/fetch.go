package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FetchConfiguration is the source of a provider's components and metadata.
//
// +kubebuilder:validation:XValidation:rule="[has(self.selector), has(self.oci), has(self.url), has(self.http), has(self.directory), has(self.image)].exists_one(set, set)",message="set exactly one of selector, oci, url, http, directory and image"
// +kubebuilder:validation:XValidation:rule="!has(self.verify) || has(self.oci) || has(self.image)",fieldPath=".verify",message="verify is for oci and image only: nothing else carries signatures"
// +kubebuilder:validation:XValidation:rule="!has(self.secretRef) || !has(self.selector) && !has(self.directory)",fieldPath=".secretRef",message="secretRef is not for selector and directory: they need no credentials"
type FetchConfiguration struct {
	// selector selects ConfigMaps in the provider's namespace by their labels. Each holds one version: its
	// `metadata` and `components`, as text in `data`, or as gzip in `binaryData` if it has the annotation
	// `provider.cluster.x-k8s.io/compressed: "true"`. The version is the value of its label
	// `provider.cluster.x-k8s.io/version`, or else its name. Secrets that have this label and these keys match,
	// too.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// oci is an OCI artifact with the files of a release as layers, e.g.
	// `oci://registry.example.com/capi/infrastructure-aws`. If it has no tag, the provider's version is the
	// tag. The prefix `http://` selects plain HTTP.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	OCI string `json:"oci,omitempty"`

	// url of the components file. It can be in a release on GitHub, or on a server with GitHub's paths, e.g.
	// `https://github.com/kubernetes-sigs/cluster-api-provider-aws/releases/latest/infrastructure-components.yaml`;
	// in a generic package on GitLab, e.g.
	// `https://gitlab.example.com/api/v4/projects/7/packages/generic/aws/v2.11.1/infrastructure-components.yaml`;
	// or next to metadata.yaml on a web server, e.g.
	// `https://mirror.example.com/aws/v2.11.1/infrastructure-components.yaml`. The version in the URL is
	// replaced with the provider's version.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`

	// http is the URL of a folder on a web server that contains a folder for each version with metadata.yaml
	// and the components, e.g. `https://mirror.example.com/capi/infrastructure-aws` for
	// `…/infrastructure-aws/v2.11.1/infrastructure-components.yaml`. `version` must be exact, because a web
	// server cannot list versions.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('https://') || self.startsWith('http://')",message="must start with https:// or http://"
	HTTP string `json:"http,omitempty"`

	// directory is a path in the operator's file system with the layout of a clusterctl local repository, e.g.
	// `/providers` for `/providers/infrastructure-aws/v2.11.1/infrastructure-components.yaml`.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="must be an absolute path"
	Directory string `json:"directory,omitempty"`

	// image is a container image with the provider's manifests in `/capi-manifests`, e.g.
	// `registry.example.com/capi/cluster-api-aws-controller`. If it has no tag or digest, the provider's
	// version is the tag.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Image string `json:"image,omitempty"`

	// secretRef is a Secret with credentials for the source: `username` and `password`, or `token` (also as
	// `GITHUB_TOKEN` or `GITLAB_ACCESS_TOKEN`), or `.dockerconfigjson`. It can also hold `ca.crt`, a
	// certificate authority to trust; `tls.crt` and `tls.key`, a client certificate; and `proxy`, the URL of a
	// proxy. Default: `GITHUB_TOKEN` or `GITLAB_ACCESS_TOKEN` in the Secret with the provider's variables.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`

	// verify requires a signature of the artifact or image. Default: none is required.
	// +optional
	Verify *Verification `json:"verify,omitempty"`

	// digest that the content must have: `sha256:` and 64 hexadecimal digits. It is that of the manifest for
	// oci and image, and otherwise that of the components file. Default: not checked.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[a-f0-9]{64}$`
	Digest string `json:"digest,omitempty"`
}

// Verification selects which signatures are trusted.
type Verification struct {
	// provider is the signing tool. Default: Cosign.
	// +optional
	// +kubebuilder:default=Cosign
	// +kubebuilder:validation:Enum=Cosign
	Provider VerificationProvider `json:"provider,omitempty"`

	// secretRef is a Secret with the trusted public keys, under keys that end in `.pub`.
	SecretRef LocalSecretReference `json:"secretRef"`
}

// VerificationProvider is a tool that signs artifacts.
type VerificationProvider string

// VerifyCosign is the only supported signing tool.
const VerifyCosign VerificationProvider = "Cosign"
