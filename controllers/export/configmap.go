package export

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// maxSize is the size of the values in a ConfigMap up to which the API server accepts it.
const maxSize = 1 << 20

// sourceOCI is the value of v1alpha2.ConfigMapSourceLabel.
const sourceOCI = "oci"

// newConfigMap returns the ConfigMap that cluster-api-operator would write for a bundle of a resource, with
// Capstan's mark. Components that do not fit are compressed. The error is a *RefusedError if the version cannot
// be the name of an object, or if the components do not fit compressed either.
func newConfigMap(provider v1alpha2.Provider, b *bundle.Bundle) (*corev1.ConfigMap, error) {
	kind := provider.ProviderType()

	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: provider.GetNamespace(),
			Name:      fmt.Sprintf("%s-%s-%s", kind.Name(), provider.GetName(), b.Version),
			Labels: map[string]string{
				v1alpha2.ConfigMapTypeLabel:      kind.Name(),
				v1alpha2.ConfigMapNameLabel:      provider.GetName(),
				v1alpha2.ConfigMapVersionLabel:   b.Version,
				v1alpha2.ConfigMapGeneratedLabel: "true",
				v1alpha2.ManagedByLabel:          v1alpha2.FieldOwner,
			},
			Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha2.GroupVersion.String(),
				Kind:       string(kind),
				Name:       provider.GetName(),
				UID:        provider.GetUID(),
			}},
		},
		Data: map[string]string{v1alpha2.ConfigMapMetadataKey: string(b.Metadata)},
	}

	if config := provider.GetSpec().FetchConfig; config != nil && config.OCI != "" {
		cm.Labels[v1alpha2.ConfigMapSourceLabel] = sourceOCI
		cm.Annotations[v1alpha2.ConfigMapSourceLabel] = config.OCI
	}

	if err := checkNames(cm); err != nil {
		return nil, err
	}

	return cm, setComponents(cm, b)
}

// checkNames returns a *RefusedError if the name or a label of a ConfigMap is not one that the API server accepts,
// such as that of a version with build metadata.
func checkNames(cm *corev1.ConfigMap) error {
	problems := validation.IsDNS1123Subdomain(cm.Name)
	for _, value := range cm.Labels {
		problems = append(problems, validation.IsValidLabelValue(value)...)
	}

	if len(problems) == 0 {
		return nil
	}

	return refused(cm, "its name and labels cannot hold the provider's name and version: %s", problems[0])
}

// setComponents adds the components of a bundle, compressed only if they would not fit otherwise, or are not UTF-8 as
// texts in a ConfigMap have to be.
func setComponents(cm *corev1.ConfigMap, b *bundle.Bundle) error {
	if len(b.Metadata)+len(b.Components) <= maxSize && utf8.Valid(b.Components) {
		cm.Data[v1alpha2.ConfigMapComponentsKey] = string(b.Components)
		return nil
	}

	var compressed bytes.Buffer

	zip := gzip.NewWriter(&compressed)
	if _, err := zip.Write(b.Components); err != nil {
		return err
	}

	if err := zip.Close(); err != nil {
		return err
	}

	if size := len(b.Metadata) + compressed.Len(); size > maxSize {
		return refused(cm, "the metadata and the compressed components have %d KiB, and a ConfigMap holds %d KiB",
			(size+1<<10-1)>>10, maxSize>>10)
	}

	cm.Annotations[v1alpha2.ConfigMapCompressedAnnotation] = "true"
	cm.BinaryData = map[string][]byte{v1alpha2.ConfigMapComponentsKey: compressed.Bytes()}

	return nil
}

// RefusedError reports that a ConfigMap is not written, and that another attempt would have the same result.
type RefusedError struct {
	// ConfigMap that is not written.
	ConfigMap client.ObjectKey
	// Reason says why, and what to do about it.
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the components are not in ConfigMap %s for other programs, which does not affect the provider: %s",
		e.ConfigMap, e.Reason)
}

// refused returns a *RefusedError.
func refused(cm *corev1.ConfigMap, format string, args ...any) error {
	return &RefusedError{ConfigMap: client.ObjectKeyFromObject(cm), Reason: fmt.Sprintf(format, args...)}
}
