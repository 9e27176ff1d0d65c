package source

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// ConfigMaps is a place in a cluster with one ConfigMap for each version, in the format of
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
	// Watched finds them without a request; nil if only Reader knows them.
	Watched Find
}

// Find returns the metadata of the ConfigMaps or Secrets of a namespace that match, and whether it is known.
type Find func(kind, namespace string, matches func(*metav1.PartialObjectMetadata) bool) (
	found []*metav1.PartialObjectMetadata, known bool,
)

// Source returns the source of a provider whose versions they are.
func (c *ConfigMaps) Source(provider bundle.Provider) *Source {
	return &Source{Place: c, Provider: provider, Kind: "selector", local: true}
}

// Kinds of objects that hold versions. The ID of a version is "<kind> <name>".
const (
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
)

// Versions lists the ConfigMaps and Secrets that the selector matches. Those without a semantic
// version are ignored, unless there are no others. Two objects with the same version are an error, since either could
// be meant.
func (c *ConfigMaps) Versions(ctx context.Context) ([]Version, error) {
	var (
		versions []Version
		ignored  []string
	)

	objects := map[string]string{} // by version

	for _, kind := range []string{kindConfigMap, kindSecret} {
		err := c.each(ctx, kind, func(item *metav1.PartialObjectMetadata) error {
			label := item.Labels[v1alpha2.ConfigMapVersionLabel]
			if kind == kindSecret && label == "" {
				return nil
			}

			object, version := kind+" "+item.Name, cmp.Or(label, item.Name)

			v, err := semver.NewVersion(version)
			if err != nil {
				ignored = append(ignored, object)
				return nil //nolint:nilerr // the selector may match other objects
			}

			if other, taken := objects[v.String()]; taken {
				return &transport.Error{
					Kind: transport.Invalid, Place: fmt.Sprintf("%s and %s in namespace %s", other, object, c.Namespace),
					Problem: "both hold version " + version, Fix: "delete one or narrow spec.fetchConfig.selector",
				}
			}

			objects[v.String()] = object

			versions = append(versions, Version{
				Name: withV(version), ID: object, Fingerprint: string(item.UID) + "/" + item.ResourceVersion,
			})

			return nil
		})
		if err != nil {
			return nil, err
		}
	}

	sortNewestFirst(versions)

	switch {
	case len(versions) > 0:
		return versions, nil
	case len(ignored) > 0:
		return nil, &transport.Error{
			Kind: transport.NotFound, Place: fmt.Sprintf("%s in namespace %s", strings.Join(ignored, ", "), c.Namespace),
			Problem: fmt.Sprintf("neither the label %s nor the name is a semantic version such as v1.13.5",
				v1alpha2.ConfigMapVersionLabel),
		}
	}

	return nil, &transport.Error{
		Kind: transport.NotFound,
		Problem: fmt.Sprintf("no ConfigMap in namespace %s matches the selector %q",
			c.Namespace, metav1.FormatLabelSelector(c.Selector)),
		Fix: fmt.Sprintf("create one for each version, with the label %s, or correct spec.fetchConfig.selector",
			v1alpha2.ConfigMapVersionLabel),
	}
}

// versionsPage is how many objects are read at a time: as large as possible, they are 15 MiB.
const versionsPage = 10

// each calls a function with the metadata of each object of a kind that the selector matches.
func (c *ConfigMaps) each(ctx context.Context, kind string, do func(*metav1.PartialObjectMetadata) error) error {
	selector, err := metav1.LabelSelectorAsSelector(c.Selector)
	if err != nil {
		return fmt.Errorf("spec.fetchConfig.selector is not a valid label selector: %w", err)
	}

	if c.Watched != nil {
		matching, known := c.Watched(kind, c.Namespace, func(m *metav1.PartialObjectMetadata) bool {
			return selector.Matches(labels.Set(m.Labels))
		})
		if known {
			return eachOf(matching, do)
		}
	}

	for token := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))

		if err := c.Reader.List(ctx, page, client.InNamespace(c.Namespace),
			client.MatchingLabelsSelector{Selector: selector}, client.Limit(versionsPage), client.Continue(token),
		); err != nil {
			return fmt.Errorf("list %ss in namespace %s: %w", kind, c.Namespace, err)
		}

		for i := range page.Items {
			if err := do(&page.Items[i]); err != nil {
				return err
			}
		}

		if token = page.Continue; token == "" {
			return nil
		}
	}
}

// eachOf calls a function with each of some objects, by name.
func eachOf(objects []*metav1.PartialObjectMetadata, do func(*metav1.PartialObjectMetadata) error) error {
	byName := func(a, b *metav1.PartialObjectMetadata) int { return strings.Compare(a.Name, b.Name) }

	for _, o := range slices.SortedFunc(slices.Values(objects), byName) {
		if err := do(o); err != nil {
			return err
		}
	}

	return nil
}

// Files reads the ConfigMap or Secret of a version.
func (c *ConfigMaps) Files(ctx context.Context, version Version) (*Files, error) {
	kind, name, _ := strings.Cut(version.ID, " ")
	key := client.ObjectKey{Namespace: c.Namespace, Name: name}

	data, compressed, err := c.read(ctx, kind, key)
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind, key, err)
	}

	invalid := &transport.Error{Kind: transport.Invalid, Place: kind + " " + key.String()}

	metadata, components := data[v1alpha2.ConfigMapMetadataKey], data[v1alpha2.ConfigMapComponentsKey]
	if compressed {
		components, err = gunzip(components)
	}

	switch {
	case metadata == nil:
		invalid.Problem = fmt.Sprintf("has no key %q", v1alpha2.ConfigMapMetadataKey)
		invalid.Fix = "put the provider's metadata.yaml there"
	case err != nil:
		invalid.Problem = fmt.Sprintf("has a key %q that should be gzip by the annotation %s, but is not: %v",
			v1alpha2.ConfigMapComponentsKey, v1alpha2.ConfigMapCompressedAnnotation, err)
	case len(components) == 0:
		invalid.Problem = fmt.Sprintf("has no key %q", v1alpha2.ConfigMapComponentsKey)
		invalid.Fix = "put the provider's components YAML there"
	default:
		return newFiles(invalid.Place, strings.ToLower(kind), map[string][]byte{
			bundle.MetadataFile: metadata, bundle.ComponentsFile: components,
		}), nil
	}

	return nil, invalid
}

// read reads a ConfigMap or Secret, and reports whether its components are compressed with gzip. Components in the
// binaryData of a ConfigMap are used only then.
func (c *ConfigMaps) read(
	ctx context.Context, kind string, key client.ObjectKey,
) (data map[string][]byte, compressed bool, err error) {
	isCompressed := func(object metav1.Object) bool {
		return object.GetAnnotations()[v1alpha2.ConfigMapCompressedAnnotation] == "true"
	}

	if kind == kindSecret {
		secret := &corev1.Secret{}
		err := c.Reader.Get(ctx, key, secret)

		return secret.Data, isCompressed(secret), err
	}

	cm := &corev1.ConfigMap{}
	err = c.Reader.Get(ctx, key, cm)

	data = map[string][]byte{}
	for k, v := range cm.Data {
		data[k] = []byte(v)
	}

	if compressed = isCompressed(cm); compressed {
		data[v1alpha2.ConfigMapComponentsKey] = cm.BinaryData[v1alpha2.ConfigMapComponentsKey]
	}

	return data, compressed, err
}

// gunzip decompresses at most limit.MaxText bytes.
func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}

	text, err := io.ReadAll(io.LimitReader(r, limit.MaxText+1))
	if err == nil && len(text) > limit.MaxText {
		err = fmt.Errorf("decompresses to more than %d MiB", limit.MaxText>>20)
	}

	return text, err
}
