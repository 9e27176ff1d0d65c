// Package crd carries the operator's own CustomResourceDefinitions and brings a cluster's to their
// version.
package crd

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/Masterminds/semver/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

//go:embed bases/*.yaml
var bases embed.FS

// annotationVersion holds, on a CRD, the version of the operator that applied it last.
const annotationVersion = v1alpha2.Prefix + "/operator-version"

// Bases are the CustomResourceDefinitions, in the order of their names.
func Bases() ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(bases, "bases/*.yaml")
	if err != nil {
		return nil, err
	}

	definitions := make([]*unstructured.Unstructured, 0, len(files))
	for _, file := range files {
		data, err := bases.ReadFile(file)
		if err != nil {
			return nil, err
		}

		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &definition.Object); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}

		definitions = append(definitions, definition)
	}

	return definitions, nil
}

// Upgrade brings the CustomResourceDefinitions in the cluster to those of this version of the
// operator. One that a newer version applied stays, so that an operator that goes back takes no
// field away from resources. It installs none: that is for whoever installs the operator.
func Upgrade(ctx context.Context, c client.Client, version string) error {
	definitions, err := Bases()
	if err != nil {
		return err
	}

	var failed []error

	for _, definition := range definitions {
		if err := upgrade(ctx, c, definition, version); err != nil {
			failed = append(failed, fmt.Errorf("upgrade CustomResourceDefinition %s: %w", definition.GetName(), err))
		}
	}

	return errors.Join(failed...)
}

func upgrade(ctx context.Context, c client.Client, definition *unstructured.Unstructured, version string) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(definition.GroupVersionKind())

	err := c.Get(ctx, client.ObjectKeyFromObject(definition), live)
	if apierrors.IsNotFound(err) {
		return errors.New(
			"it is not installed; apply those of this version, which the chart has in crds/ and the release in capstan.yaml",
		)
	}

	if err != nil {
		return err
	}

	if newer(live.Annotations[annotationVersion], version) {
		return nil
	}

	annotations := definition.GetAnnotations()
	annotations[annotationVersion] = version
	definition.SetAnnotations(annotations)

	return c.Apply(
		ctx,
		client.ApplyConfigurationFromUnstructured(definition),
		client.FieldOwner(v1alpha2.FieldOwner),
		client.ForceOwnership,
	)
}

// newer reports whether a is a later version than b. What is no semantic version, such as that of a
// build by hand, is older than any.
func newer(a, b string) bool {
	first, err := semver.NewVersion(a)
	if err != nil {
		return false
	}

	second, err := semver.NewVersion(b)

	return err == nil && first.GreaterThan(second)
}
