package source

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// ConfigMaps is a source in a cluster with one ConfigMap for each version, in the format of
// cluster-api-operator: the version is in a label, or else it is the ConfigMap's name. The key
// "metadata" holds metadata.yaml, and the key "components" the components; an annotation marks
// components that are compressed with gzip in binaryData.
//
// Secrets with the same keys are versions too, but only with the label. The selector may match
// others, which hold variables and credentials.
type ConfigMaps struct {
	// Reader lists the metadata of ConfigMaps and Secrets, and reads single ones.
	Reader client.Reader
	// Namespace and Selector determine the ConfigMaps and Secrets.
	Namespace string
	Selector  *metav1.LabelSelector
	Provider  bundle.Provider
	// Known keeps the metadata of versions that were fetched; nil to keep none. What a user has fetched is kept for User
	// only.
	Known *KnownMetadata
	User  string
}

// InConfigMap is the bundle.Bundle.Source of versions in ConfigMaps.
const InConfigMap = "configmap"

// Kinds of objects that hold versions. The ID of a version is "<kind> <name>".
const (
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
)

// Versions lists the ConfigMaps and Secrets that the selector matches. Those without a semantic
// version are ignored, unless there are no others.
func (c *ConfigMaps) Versions(ctx context.Context) ([]Version, error) {
	selector, err := metav1.LabelSelectorAsSelector(c.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.fetchConfig.selector is not a valid label selector: %w", err)
	}

	options := []client.ListOption{
		client.InNamespace(c.Namespace),
		client.MatchingLabelsSelector{Selector: selector},
	}

	var items []versionItem

	for _, kind := range []string{kindConfigMap, kindSecret} {
		err := c.each(ctx, kind, options, func(item *metav1.PartialObjectMetadata) {
			version := item.Labels[v1alpha2.ConfigMapVersionLabel]

			if kind == kindSecret && version == "" {
				return
			}

			// The rest of the metadata may be large.
			items = append(items, versionItem{kind, item.Name, version, string(item.UID) + "/" + item.ResourceVersion})
		})
		if err != nil {
			return nil, fmt.Errorf("list %ss in namespace %s: %w", kind, c.Namespace, err)
		}
	}

	if len(items) == 0 {
		return nil, c.notFound()
	}

	return c.parseVersions(items)
}

// versionItem is what is needed of the metadata of a ConfigMap or Secret.
type versionItem struct{ kind, name, version, fingerprint string }

// versionsPage is how many objects are read at a time: as large as possible, they are 15 MiB.
const versionsPage = 10

// each calls a function with the metadata of each object of a kind.
func (c *ConfigMaps) each(
	ctx context.Context, kind string, options []client.ListOption, do func(*metav1.PartialObjectMetadata),
) error {
	for token := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))

		paged := append(slices.Clone(options), client.Limit(versionsPage), client.Continue(token))
		if err := c.Reader.List(ctx, page, paged...); err != nil {
			return err
		}

		for i := range page.Items {
			do(&page.Items[i])
		}

		if token = page.Continue; token == "" {
			return nil
		}
	}
}

// notFound returns the error of a selector that matches nothing.
func (c *ConfigMaps) notFound() error {
	return &NotFoundError{Message: fmt.Sprintf(
		"no ConfigMap in namespace %s matches the selector %q; create one for each version, or correct "+
			"spec.fetchConfig.selector", c.Namespace, metav1.FormatLabelSelector(c.Selector))}
}

// parseVersions returns the versions of ConfigMaps and Secrets, newest first. Two objects with the
// same version are an error, since either could be meant.
func (c *ConfigMaps) parseVersions(items []versionItem) ([]Version, error) {
	var (
		versions []Version
		ignored  []string
	)

	objects := map[string]string{} // by version

	for _, item := range items {
		object := item.kind + " " + item.name
		version := cmp.Or(item.version, item.name)

		v, err := semver.NewVersion(version)
		if err != nil {
			ignored = append(ignored, object)
			continue
		}

		if other, taken := objects[v.String()]; taken {
			return nil, &bundle.InvalidError{
				File:   fmt.Sprintf("%s and %s in namespace %s", other, object, c.Namespace),
				Reason: fmt.Sprintf("both hold version %s; delete one or narrow spec.fetchConfig.selector", version),
			}
		}

		objects[v.String()] = object

		versions = append(versions, Version{
			Name:        withV(version),
			ID:          object,
			Fingerprint: item.fingerprint,
		})
	}

	if len(versions) == 0 {
		return nil, &NotFoundError{
			Message: fmt.Sprintf(
				"%s in namespace %s: neither the label %s nor the name is a semantic version such as v1.13.5",
				strings.Join(ignored, ", "),
				c.Namespace,
				v1alpha2.ConfigMapVersionLabel,
			),
		}
	}

	sortNewestFirst(versions)

	return versions, nil
}

// Fetch reads the ConfigMap or Secret of a version.
func (c *ConfigMaps) Fetch(ctx context.Context, version Version) (*bundle.Bundle, error) {
	kind, name, _ := strings.Cut(version.ID, " ")
	key := client.ObjectKey{Namespace: c.Namespace, Name: name}

	object, err := c.read(ctx, kind, key)
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind, key, err)
	}

	invalid := func(format string, args ...any) error {
		return &bundle.InvalidError{File: kind + " " + key.String(), Reason: fmt.Sprintf(format, args...)}
	}

	metadata, ok := object.data[v1alpha2.ConfigMapMetadataKey]
	if !ok {
		return nil, invalid("has no key %q; put the provider's metadata.yaml there", v1alpha2.ConfigMapMetadataKey)
	}

	components := object.data[v1alpha2.ConfigMapComponentsKey]
	if object.compressed {
		components, err = gunzip(components)
		if err != nil {
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

	c.Known.add(c.User, version, metadata)

	return &bundle.Bundle{
		Provider:   c.Provider,
		Version:    version.Name,
		Source:     strings.ToLower(kind),
		Components: components,
		Metadata:   metadata,
	}, nil
}

// versionObject is the content of a ConfigMap or Secret.
type versionObject struct {
	data map[string][]byte
	// compressed reports whether the components are compressed with gzip.
	compressed bool
}

// read reads a ConfigMap or Secret. Components in the binaryData of a ConfigMap are used only if the
// annotation marks them as compressed.
func (c *ConfigMaps) read(ctx context.Context, kind string, key client.ObjectKey) (*versionObject, error) {
	if kind == kindSecret {
		secret := &corev1.Secret{}
		if err := c.Reader.Get(ctx, key, secret); err != nil {
			return nil, err
		}

		return &versionObject{data: secret.Data, compressed: isCompressed(secret)}, nil
	}

	cm := &corev1.ConfigMap{}
	if err := c.Reader.Get(ctx, key, cm); err != nil {
		return nil, err
	}

	object := &versionObject{data: map[string][]byte{}, compressed: isCompressed(cm)}
	for k, v := range cm.Data {
		object.data[k] = []byte(v)
	}

	if object.compressed {
		object.data[v1alpha2.ConfigMapComponentsKey] = cm.BinaryData[v1alpha2.ConfigMapComponentsKey]
	}

	return object, nil
}

// isCompressed reports whether the annotation marks components as compressed.
func isCompressed(object metav1.Object) bool {
	return object.GetAnnotations()[v1alpha2.ConfigMapCompressedAnnotation] == "true"
}

// gunzip decompresses at most limit.MaxText bytes.
func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer

	out.Grow(claimedSize(data) + bytes.MinRead)

	if _, err := out.ReadFrom(io.LimitReader(r, limit.MaxText+1)); err != nil {
		return nil, err
	}

	if out.Len() > limit.MaxText {
		return nil, fmt.Errorf("decompresses to more than %d MiB", limit.MaxText>>20)
	}

	return out.Bytes(), nil
}

// claimedSize returns the size to which gzip data claims to decompress, as far as that is possible and allowed. A
// buffer that grows until the end takes four times as much memory.
func claimedSize(data []byte) int {
	const maxRatio = 1032 // of deflate

	claimed := binary.LittleEndian.Uint32(data[len(data)-4:])

	return int(min(int64(claimed), maxRatio*int64(len(data)), limit.MaxText))
}
