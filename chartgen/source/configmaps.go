package source

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// ConfigMaps are releases kept in a cluster, one ConfigMap a version, as cluster-api-operator defines them: the version
// in a label (else the ConfigMap's name is the version), metadata.yaml under the key "metadata", the components under the
// key "components", gzipped in binaryData when an annotation says so.
type ConfigMaps struct {
	// Metadata reads the metadata of ConfigMaps, from a watch if there is one.
	Metadata client.Reader
	// Reader reads ConfigMaps from the API server itself.
	Reader    client.Reader
	Namespace string
	Selector  *metav1.LabelSelector
	Provider  bundle.Provider
}

// Releases lists the matching ConfigMaps. Those whose version is not semantic are passed over, unless nothing else is there.
func (c *ConfigMaps) Releases(ctx context.Context) ([]Release, error) {
	selector, err := metav1.LabelSelectorAsSelector(c.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.fetchConfig.selector is not a valid label selector: %w", err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := c.Metadata.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list ConfigMaps in namespace %s: %w", c.Namespace, err)
	}
	if len(list.Items) == 0 {
		return nil, &NotFoundError{Message: fmt.Sprintf("no ConfigMap in namespace %s matches the selector %q; create one for each version, or correct spec.fetchConfig.selector",
			c.Namespace, metav1.FormatLabelSelector(c.Selector))}
	}
	return c.releases(list.Items)
}

// releases makes releases of ConfigMaps; two of the same version would make the choice a matter of luck.
func (c *ConfigMaps) releases(items []metav1.PartialObjectMetadata) ([]Release, error) {
	var releases []Release
	var passedOver []string
	byVersion := map[string]string{}
	for _, item := range items {
		version := cmp.Or(item.Labels[v1alpha2.ConfigMapVersionLabel], item.Name)
		v, err := semver.NewVersion(version)
		if err != nil {
			passedOver = append(passedOver, item.Name)
			continue
		}
		if other, taken := byVersion[v.String()]; taken {
			return nil, &NotFoundError{Message: fmt.Sprintf("ConfigMaps %s and %s in namespace %s both hold version %s; delete one or narrow spec.fetchConfig.selector", other, item.Name, c.Namespace, version)}
		}
		byVersion[v.String()] = item.Name
		releases = append(releases, Release{Version: "v" + strings.TrimPrefix(version, "v"), Name: item.Name, Fingerprint: string(item.UID) + "/" + item.ResourceVersion})
	}
	if len(releases) == 0 {
		return nil, &NotFoundError{Message: fmt.Sprintf("ConfigMap %s in namespace %s: neither the label %s nor the name is a semantic version such as v1.13.5",
			strings.Join(passedOver, ", "), c.Namespace, v1alpha2.ConfigMapVersionLabel)}
	}
	sortNewestFirst(releases)
	return releases, nil
}

// Fetch reads one ConfigMap.
func (c *ConfigMaps) Fetch(ctx context.Context, release Release) (*bundle.Bundle, error) {
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: c.Namespace, Name: release.Name}
	if err := c.Reader.Get(ctx, key, cm); err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	invalid := func(format string, args ...any) error {
		return &bundle.InvalidError{File: "ConfigMap " + key.String(), Reason: fmt.Sprintf(format, args...)}
	}
	metadata, ok := cm.Data[v1alpha2.ConfigMapMetadataKey]
	if !ok {
		return nil, invalid("has no key %q; put the provider's metadata.yaml there", v1alpha2.ConfigMapMetadataKey)
	}
	components := []byte(cm.Data[v1alpha2.ConfigMapComponentsKey])
	if cm.Annotations[v1alpha2.ConfigMapCompressedAnnotation] == "true" {
		var err error
		if components, err = gunzip(cm.BinaryData[v1alpha2.ConfigMapComponentsKey]); err != nil {
			return nil, invalid("binaryData key %q should be gzip by the annotation %s, but is not: %v", v1alpha2.ConfigMapComponentsKey, v1alpha2.ConfigMapCompressedAnnotation, err)
		}
	}
	if len(components) == 0 {
		return nil, invalid("has no key %q; put the provider's components YAML there", v1alpha2.ConfigMapComponentsKey)
	}
	return &bundle.Bundle{Provider: c.Provider, Version: release.Version, Source: "configmap", Components: components, Metadata: []byte(metadata)}, nil
}

// gunzip unpacks at most maxFileSize bytes.
func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, maxFileSize+1))
	if err == nil && len(out) > maxFileSize {
		err = fmt.Errorf("unpacks to more than %d MiB", maxFileSize>>20)
	}
	return out, err
}
