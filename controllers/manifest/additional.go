package manifest

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/chartgen/limit"
)

const additionalField = "spec.additionalManifests"

// Bounds of the additional objects together, with the values of variables. They are those of one object, and more than
// a ConfigMap has room for without values.
const (
	maxAdditional       = limit.MaxDocument
	maxAdditionalValues = limit.MaxDocumentValues
)

// Additional is the content of the ConfigMap of spec.additionalManifests.
type Additional struct {
	ConfigMap types.NamespacedName
	// Manifests are YAML documents with expressions over the provider's variables.
	Manifests string
}

// ReadAdditional reads the ConfigMap of spec.additionalManifests. It returns nil if the spec has
// none, and a *problem.Error if the ConfigMap does not exist or has no manifests.
func ReadAdditional(ctx context.Context, apiReader client.Reader, provider v1alpha2.Provider) (*Additional, error) {
	reference := provider.GetSpec().AdditionalManifests
	if reference == nil {
		return nil, nil
	}

	name := types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}
	if name.Namespace == "" {
		name.Namespace = provider.GetNamespace()
	}

	configMap := &corev1.ConfigMap{}

	err := apiReader.Get(ctx, name, configMap)
	if apierrors.IsNotFound(err) {
		return nil, invalid(additionalField, err, "ConfigMap %s does not exist; create it, or correct the name", name)
	}

	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s of %s: %w", name, additionalField, err)
	}

	manifests, exists := configMap.Data[v1alpha2.ConfigMapManifestsKey]
	if !exists {
		return nil, invalid(additionalField, nil, "ConfigMap %s has no key %q; put the YAML there",
			name, v1alpha2.ConfigMapManifestsKey)
	}

	return &Additional{ConfigMap: name, Manifests: manifests}, nil
}

// Variables returns the names of the variables in the manifests; none without manifests. The error is an
// *problem.Error if the manifests are invalid.
func (a *Additional) Variables() ([]string, error) {
	components, err := a.components()
	if err != nil {
		return nil, err
	}

	names := make([]string, 0, len(components.Variables))
	for _, variable := range components.Variables {
		names = append(names, variable.Name)
	}

	return names, nil
}

// components parses the manifests. They need not have any object: they may be only a comment. The error
// is a *problem.Error.
func (a *Additional) components() (*bundle.Components, error) {
	if a == nil {
		return &bundle.Components{}, nil
	}

	components, err := bundle.ParseComponents([]byte(a.Manifests))
	if errors.Is(err, bundle.ErrNoObject) {
		return &bundle.Components{}, nil
	}

	if err != nil {
		return nil, a.invalid(err)
	}

	return components, nil
}

// additionalObjects returns the objects of the additional manifests, as parts of the provider: with the variables'
// values, the provider's namespace and its labels.
func (in *Input) additionalObjects() ([]*unstructured.Unstructured, error) {
	components, err := in.Additional.components()
	if err != nil {
		return nil, err
	}

	objects := make([]*unstructured.Unstructured, 0, len(components.Documents))
	budget := limit.NewBudget(maxAdditional, maxAdditionalValues)

	for i := range components.Documents {
		object, err := in.expand(&components.Documents[i], budget)
		if err != nil {
			return nil, err
		}

		if err := in.setNamespace(object); err != nil {
			return nil, err
		}

		in.setLabels(object)

		objects = append(objects, object)
	}

	return objects, nil
}

// invalid returns the error for manifests that cannot be read.
func (a *Additional) invalid(err error) error {
	reason := err.Error()

	if invalid := (*bundle.InvalidError)(nil); errors.As(err, &invalid) {
		place := fmt.Sprintf("ConfigMap %s, key %s", a.ConfigMap, v1alpha2.ConfigMapManifestsKey)
		if invalid.Line > 0 {
			place += ","
		}

		reason = (&bundle.InvalidError{File: place, Line: invalid.Line, Reason: invalid.Reason}).Error()
	}

	return invalid(additionalField, err, "%s", reason)
}

// expand substitutes the variables in a document and returns its object.
func (in *Input) expand(doc *bundle.Document, budget *limit.Budget) (*unstructured.Unstructured, error) {
	content, err := doc.Decode(in.Variables, budget)

	var missing *expr.MissingError
	if errors.As(err, &missing) {
		return nil, invalid(additionalField, err, "%v; set them in the provider's Secret or in spec.variables", err)
	}

	if err != nil {
		return nil, in.Additional.invalid(&bundle.InvalidError{
			Line: doc.Line, Reason: fmt.Sprintf("%s: %v", doc, err), Err: err,
		})
	}

	object := &unstructured.Unstructured{Object: content}
	if limit.Depth(content) != nil || object.GetKind() == "" || object.GetName() == "" {
		return nil, in.Additional.invalid(&bundle.InvalidError{
			Line:   doc.Line,
			Reason: "not an object once the variables are substituted; quote the expressions",
		})
	}

	return object, nil
}

// setNamespace sets the provider's namespace, unless the object has its own, or is of a kind without
// namespaces. Unknown kinds are taken to have namespaces: if the kind is not served when the release
// is installed, that is reported then.
func (in *Input) setNamespace(object *unstructured.Unstructured) error {
	namespaced, err := in.Scope.IsObjectNamespaced(object)
	if meta.IsNoMatchError(err) {
		namespaced = true
	} else if err != nil {
		return fmt.Errorf("%s: look up the scope of %s: %w", additionalField, object.GetKind(), err)
	}

	switch {
	case !namespaced:
		object.SetNamespace("")
	case object.GetNamespace() == "":
		object.SetNamespace(in.Namespace)
	}

	return nil
}

// setLabels adds clusterctl's labels.
func (in *Input) setLabels(object *unstructured.Unstructured) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}

	labels[v1alpha2.ClusterctlProviderLabel] = in.Label
	labels[v1alpha2.ClusterctlLabel] = ""

	object.SetLabels(labels)
}
