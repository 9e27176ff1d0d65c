// Package fleet puts providers and an operator onto a test bed, for the scenarios, the benchmark
// and the demo: releases from folders become ConfigMaps and resources, and the real operator runs
// as a process of its own.
package fleet

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// Release is one version of a provider from a local repository, as resources for a cluster.
type Release struct {
	Type      v1alpha2.ProviderType
	Namespace string
	Bundle    *bundle.Bundle
	// Variables go into the provider's Secret, if there are any.
	Variables map[string]string
}

// Wanted names a release: a label such as "infrastructure-aws" and a version or range; an empty one
// is the newest.
type Wanted struct {
	Label, Version string
	Variables      map[string]string
}

// Standard are the five providers of the demo and the benchmark, at these versions where the
// repository has them.
var Standard = []Wanted{
	{Label: "cluster-api", Version: "v1.13.5"},
	{Label: "bootstrap-kubeadm", Version: "v1.13.5"},
	{Label: "control-plane-kubeadm", Version: "v1.13.5"},
	{Label: "infrastructure-docker", Version: "v1.13.5"},
	{Label: "infrastructure-aws", Version: "v2.11.1", Variables: AWSVariables},
}

// AWSVariables are the required variables of the provider aws, with a value that opens nothing.
var AWSVariables = map[string]string{"AWS_B64ENCODED_CREDENTIALS": "W2RlZmF1bHRdCg=="}

// Samples is the local repository of small providers that the project brings, seen from the folder
// of the module.
const Samples = "test/data/providers"

// Repository is the local repository to use: PROVIDERS if it is set, else the project's samples
// below root.
func Repository(root string) (folder string, real bool) {
	if folder := os.Getenv("PROVIDERS"); folder != "" {
		return folder, true
	}

	return filepath.Join(root, Samples), false
}

// Load reads a release from a local repository. A version that is not there gives way to the
// newest.
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

	b, err := directory.Fetch(ctx, picked)
	if err != nil {
		return nil, err
	}

	providerType, _ := v1alpha2.ParseLabel(wanted.Label)

	return &Release{Type: providerType, Namespace: wanted.Label + "-system", Bundle: b, Variables: wanted.Variables}, nil
}

// Labels are what the resource's selector asks for; all versions of a provider share them.
func (r *Release) Labels() map[string]string {
	return map[string]string{
		v1alpha2.ConfigMapTypeLabel: r.Type.Name(),
		v1alpha2.ConfigMapNameLabel: r.Bundle.Provider.Name,
	}
}

// ConfigMap holds the release as the operator's source, compressed.
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

// Secret holds the variables.
func (r *Release) Secret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Bundle.Provider.Label + "-variables"},
		StringData: r.Variables,
	}
}

// Resource asks for the release.
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
