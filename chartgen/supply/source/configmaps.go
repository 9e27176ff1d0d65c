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

// ConfigMaps are releases kept in a cluster, one ConfigMap a version, as cluster-api-operator
// defines them: the version in a label (else the ConfigMap's name is the version), metadata.yaml
// under the key "metadata", the components under the key "components", gzipped in binaryData when
// an annotation says so. Secrets with the same keys do as well, when they have the label with the
// version: others that the selector matches hold variables and credentials.
type ConfigMaps struct {
	// Metadata reads the metadata of ConfigMaps and Secrets, from a watch if there is one.
	Client client.Reader
	// Reader reads ConfigMaps and Secrets from the API server itself.
	APIReader    client.Reader
	Namespace string
	Selector  *metav1.LabelSelector
	Provider  bundle.Provider
}

// The kinds that hold releases; a release's name is "Kind name".
const (
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
)

// Releases lists what matches. ConfigMaps whose version is not semantic are passed over, unless
// nothing else is there.
func (c *ConfigMaps) Versions(ctx context.Context) ([]Version, error) {
	selector, err := metav1.LabelSelectorAsSelector(c.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.fetchConfig.selector is not a valid label selector: %w", err)
	}

	var items []metav1.PartialObjectMetadata

	for _, kind := range []string{kindConfigMap, kindSecret} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))

		if err := c.Client.List(
			ctx,
			list,
			client.InNamespace(c.Namespace),
			client.MatchingLabelsSelector{Selector: selector},
		); err != nil {
			return nil, fmt.Errorf("list %ss in namespace %s: %w", kind, c.Namespace, err)
		}

		for _, item := range list.Items {
			if kind == kindConfigMap || item.Labels[v1alpha2.ConfigMapVersionLabel] != "" {
				item.Kind = kind
				items = append(items, item)
			}
		}
	}

	if len(items) == 0 {
		return nil, &NotFoundError{
			Message: fmt.Sprintf(
				"no ConfigMap in namespace %s matches the selector %q; create one for each version, or correct spec.fetchConfig.selector",
				c.Namespace,
				metav1.FormatLabelSelector(c.Selector),
			),
		}
	}

	return c.parseVersions(items)
}

// releases makes releases of ConfigMaps and Secrets; two of the same version would make the choice
// a matter of luck.
func (c *ConfigMaps) parseVersions(items []metav1.PartialObjectMetadata) ([]Version, error) {
	var (
		releases   []Version
		passedOver []string
	)

	byVersion := map[string]string{}

	for _, item := range items {
		name := item.Kind + " " + item.Name
		version := cmp.Or(item.Labels[v1alpha2.ConfigMapVersionLabel], item.Name)

		v, err := semver.NewVersion(version)
		if err != nil {
			passedOver = append(passedOver, name)
			continue
		}

		if other, taken := byVersion[v.String()]; taken {
			return nil, &NotFoundError{
				Message: fmt.Sprintf(
					"%s and %s in namespace %s both hold version %s; delete one or narrow spec.fetchConfig.selector",
					other,
					name,
					c.Namespace,
					version,
				),
			}
		}

		byVersion[v.String()] = name
		releases = append(
			releases,
			Version{
				Name:     "v" + strings.TrimPrefix(version, "v"),
				ID:        name,
				Fingerprint: string(item.UID) + "/" + item.ResourceVersion,
			},
		)
	}

	if len(releases) == 0 {
		return nil, &NotFoundError{
			Message: fmt.Sprintf("%s in namespace %s: neither the label %s nor the name is a semantic version such as v1.13.5",
				strings.Join(passedOver, ", "), c.Namespace, v1alpha2.ConfigMapVersionLabel),
		}
	}

	sortNewestFirst(releases)

	return releases, nil
}

// Fetch reads one ConfigMap or Secret.
func (c *ConfigMaps) Fetch(ctx context.Context, release Version) (*bundle.Bundle, error) {
	kind, name, _ := strings.Cut(release.ID, " ")
	key := client.ObjectKey{Namespace: c.Namespace, Name: name}

	compressed, data, err := c.read(ctx, kind, key)
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind, key, err)
	}

	invalid := func(format string, args ...any) error {
		return &bundle.InvalidError{File: kind + " " + key.String(), Reason: fmt.Sprintf(format, args...)}
	}

	metadata, ok := data[v1alpha2.ConfigMapMetadataKey]
	if !ok {
		return nil, invalid("has no key %q; put the provider's metadata.yaml there", v1alpha2.ConfigMapMetadataKey)
	}

	components := data[v1alpha2.ConfigMapComponentsKey]
	if compressed {
		if components, err = gunzip(components); err != nil {
			return nil, invalid(
				"the key %q should be gzip by the annotation %s, but is not: %v",
				v1alpha2.ConfigMapComponentsKey,
				v1alpha2.ConfigMapCompressedAnnotation,
				err,
			)
		}
	}

	if len(components) == 0 {
		return nil, invalid("has no key %q; put the provider's components YAML there", v1alpha2.ConfigMapComponentsKey)
	}

	return &bundle.Bundle{
		Provider:   c.Provider,
		Version:    release.Name,
		Source:     strings.ToLower(kind),
		Components: components,
		Metadata:   metadata,
	}, nil
}

// read reads the data of a ConfigMap or Secret, and whether its components are compressed: in a
// ConfigMap they count only where the annotation says they are.
func (c *ConfigMaps) read(
	ctx context.Context,
	kind string,
	key client.ObjectKey,
) (compressed bool, data map[string][]byte, err error) {
	if kind == kindSecret {
		secret := &corev1.Secret{}
		err = c.APIReader.Get(ctx, key, secret)

		return secret.Annotations[v1alpha2.ConfigMapCompressedAnnotation] == "true", secret.Data, err
	}

	cm := &corev1.ConfigMap{}
	if err = c.APIReader.Get(ctx, key, cm); err != nil {
		return false, nil, err
	}

	data = map[string][]byte{}
	for k, v := range cm.Data {
		data[k] = []byte(v)
	}

	compressed = cm.Annotations[v1alpha2.ConfigMapCompressedAnnotation] == "true"
	if compressed {
		data[v1alpha2.ConfigMapComponentsKey] = cm.BinaryData[v1alpha2.ConfigMapComponentsKey]
	}

	return compressed, data, nil
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
