// Package harness installs providers on a test bed and runs the operator, for the scenarios, the
// benchmarks and the demo. It turns releases in folders into ConfigMaps and provider resources, and
// runs the real operator as a separate process.
package harness

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/source"
)

// Release is one version of a provider from a local repository.
type Release struct {
	Type      v1alpha2.ProviderType
	Namespace string
	Bundle    *bundle.Bundle
	// Variables are the content of the provider's Secret, if there are any.
	Variables map[string]string
}

// Wanted selects a release by label, such as "infrastructure-aws", and by version or range. An
// empty version selects the newest.
type Wanted struct {
	Label, Version string
	Variables      map[string]string
}

// Standard lists the five providers of the demo and the benchmark, with the versions to use if the
// repository has them.
var Standard = []Wanted{
	{Label: "cluster-api", Version: "v1.13.5"},
	{Label: "bootstrap-kubeadm", Version: "v1.13.5"},
	{Label: "control-plane-kubeadm", Version: "v1.13.5"},
	{Label: "infrastructure-docker", Version: "v1.13.5"},
	{Label: "infrastructure-aws", Version: "v2.11.1", Variables: AWSVariables},
}

// AWSVariables are the required variables of the provider aws. Their values give access to nothing.
var AWSVariables = map[string]string{"AWS_B64ENCODED_CREDENTIALS": "W2RlZmF1bHRdCg=="}

// Load reads a release from a local repository. It takes the newest one if the version is missing.
func Load(ctx context.Context, repository string, wanted Wanted) (*Release, error) {
	directory, err := source.NewDirectory(filepath.Join(repository, wanted.Label))
	if err != nil {
		return nil, err
	}

	releases, err := directory.Versions(ctx)
	if err != nil {
		return nil, err
	}

	picked, err := source.Pick(releases, wanted.Version, "")
	if err != nil {
		picked = releases[0]
	}

	published, err := directory.Fetch(ctx, picked)
	if err != nil {
		return nil, err
	}

	providerType, _ := v1alpha2.ParseLabel(wanted.Label)

	return &Release{
		Type: providerType, Namespace: wanted.Label + "-system", Bundle: published.Bundle, Variables: wanted.Variables,
	}, nil
}

// Labels returns the labels that the resource's selector matches. All versions of a provider share
// them.
func (r *Release) Labels() map[string]string {
	return map[string]string{
		"provider.cluster.x-k8s.io/type": r.Type.Name(),
		"provider.cluster.x-k8s.io/name": r.Bundle.Provider.Name,
	}
}

// ConfigMap returns the release as a source for the operator, compressed.
func (r *Release) ConfigMap() (*corev1.ConfigMap, error) {
	var components bytes.Buffer

	zip := gzip.NewWriter(&components)
	if _, err := zip.Write(r.Bundle.Components); err != nil {
		return nil, err
	}

	if err := zip.Close(); err != nil {
		return nil, err
	}

	labels := r.Labels()
	labels[v1alpha2.ConfigMapVersionLabel] = r.Bundle.Version

	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: fmt.Sprintf("%s-%s", r.Bundle.Provider.Label, r.Bundle.Version), Labels: labels,
			Annotations: map[string]string{v1alpha2.ConfigMapCompressedAnnotation: "true"},
		},
		Data:       map[string]string{v1alpha2.ConfigMapMetadataKey: string(r.Bundle.Metadata)},
		BinaryData: map[string][]byte{v1alpha2.ConfigMapComponentsKey: components.Bytes()},
	}, nil
}

// Secret returns the Secret with the variables.
func (r *Release) Secret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Bundle.Provider.Label + "-variables"},
		StringData: r.Variables,
	}
}

// Resource returns the provider resource that asks for the release.
func (r *Release) Resource() v1alpha2.Provider {
	p := r.Type.New()
	p.SetNamespace(r.Namespace)
	p.SetName(r.Bundle.Provider.Name)
	p.GetSpec().Version = r.Bundle.Version

	p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{Selector: &metav1.LabelSelector{MatchLabels: r.Labels()}}
	if len(r.Variables) > 0 {
		p.GetSpec().SecretName = r.Secret().Name
	}

	return p
}

// CRDs returns the CRDs in a provider's components.
func CRDs(components []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition

	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(components)))

	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return crds, nil
		}

		if err != nil {
			return nil, err
		}

		// Other documents may be invalid until variables have values.
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if yaml.Unmarshal(document, crd) == nil && crd.Kind == "CustomResourceDefinition" {
			crds = append(crds, crd)
		}
	}
}
