package patches

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/expr"
)

const additionalField = "spec.additionalManifests"

// Additional is the content of the ConfigMap of spec.additionalManifests.
type Additional struct {
	// ConfigMap is where it comes from.
	ConfigMap types.NamespacedName
	// Manifests are YAML documents with expressions over the provider's variables.
	Manifests string
}

// ReadAdditional reads the ConfigMap of spec.additionalManifests; nil when the spec has none. A
// ConfigMap that is not there or has no manifests is an *Error.
func ReadAdditional(ctx context.Context, reader client.Reader, provider v1alpha2.Provider) (*Additional, error) {
	reference := provider.GetSpec().AdditionalManifests
	if reference == nil {
		return nil, nil
	}

	name := types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}
	if name.Namespace == "" {
		name.Namespace = provider.GetNamespace()
	}

	configMap := &corev1.ConfigMap{}

	err := reader.Get(ctx, name, configMap)
	if apierrors.IsNotFound(err) {
		return nil, &Error{
			Field:  additionalField,
			Reason: fmt.Sprintf("ConfigMap %s does not exist; create it, or correct the name", name),
			Err:    err,
		}
	}

	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s of %s: %w", name, additionalField, err)
	}

	manifests, exists := configMap.Data[v1alpha2.ConfigMapManifestsKey]
	if !exists {
		return nil, &Error{
			Field:  additionalField,
			Reason: fmt.Sprintf("ConfigMap %s has no key %q; put the YAML there", name, v1alpha2.ConfigMapManifestsKey),
		}
	}

	return &Additional{ConfigMap: name, Manifests: manifests}, nil
}

// additional makes the documents of the additional manifests.
func (in *Input) additional() ([]*document, error) {
	if in.Additional == nil {
		return nil, nil
	}

	components, err := bundle.ParseComponents([]byte(in.Additional.Manifests))
	if err != nil {
		return nil, in.wrong(err)
	}

	documents := make([]*document, 0, len(components.Documents))
	for i := range components.Documents {
		d, err := in.additionalDocument(&components.Documents[i])
		if err != nil {
			return nil, err
		}

		documents = append(documents, d)
	}

	return documents, nil
}

// wrong makes the error of manifests that cannot be read.
func (in *Input) wrong(err error) error {
	reason := err.Error()

	var invalid *bundle.InvalidError
	if errors.As(err, &invalid) {
		reason = (&bundle.InvalidError{File: fmt.Sprintf("ConfigMap %s, key %s,", in.Additional.ConfigMap, v1alpha2.ConfigMapManifestsKey), Line: invalid.Line, Reason: invalid.Reason}).Error()
	}

	return &Error{Field: additionalField, Reason: reason, Err: err}
}

// additionalDocument makes one object a part of the provider: variables, namespace and labels.
func (in *Input) additionalDocument(doc *bundle.Document) (*document, error) {
	text, err := doc.Text.Expand(in.Variables)

	var missing *expr.MissingError
	if errors.As(err, &missing) {
		return nil, &Error{
			Field:  additionalField,
			Reason: err.Error() + "; put them into the provider's Secret or spec.variables",
			Err:    err,
		}
	}

	if err != nil {
		return nil, in.wrong(err)
	}

	object := &unstructured.Unstructured{}

	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = utiljson.Unmarshal(data, &object.Object)
	}

	if err != nil || object.GetKind() == "" || object.GetName() == "" { // its text may hold values
		return nil, in.wrong(
			&bundle.InvalidError{
				Line:   doc.Line,
				Reason: "no object any more once the variables have their values; quote the expressions",
			},
		)
	}

	if err := in.place(object); err != nil {
		return nil, err
	}

	if data, err = yaml.Marshal(object.Object); err != nil {
		return nil, fmt.Errorf("write %s %s of %s: %w", object.GetKind(), object.GetName(), additionalField, err)
	}

	return newDocument(fmt.Appendf(nil, "---\n# Source: ConfigMap %s\n%s", in.Additional.ConfigMap, data)), nil
}

// place gives an object its namespace, unless it names its own or has none, and clusterctl's
// labels. An object of a kind that is not served, or not yet, is the release's to tell of.
func (in *Input) place(object *unstructured.Unstructured) error {
	namespaced, err := in.Scope.IsObjectNamespaced(object)
	switch {
	case err != nil && !meta.IsNoMatchError(err):
		return fmt.Errorf("%s: find out whether %s has a namespace: %w", additionalField, object.GetKind(), err)
	case err == nil && !namespaced:
		object.SetNamespace("")
	case object.GetNamespace() == "":
		object.SetNamespace(in.Namespace)
	}

	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}

	labels[v1alpha2.ClusterctlProviderLabel], labels[v1alpha2.ClusterctlLabel] = in.Label, ""
	object.SetLabels(labels)

	return nil
}
