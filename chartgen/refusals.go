package chartgen

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/typed"
)

// checkTypes returns an error if clusterctl refuses an object because of the type of one of its values,
// whatever the values of variables are. The error is a *bundle.InvalidError.
func checkTypes(doc *bundle.Document) error {
	// Variables of CRDs always have their defaults. In other objects, the default may have the wrong type
	// only until a user sets the variable.
	if !doc.IsCRD() && len(doc.Text.Variables()) > 0 {
		return nil
	}

	err := typed.Check(doc.Object)
	if err == nil && doc.IsCRD() {
		err = checkCertificate(doc.Object.GetAnnotations())
	}

	if err != nil {
		return refused(doc, err)
	}

	// clusterctl drops all labels if one is not a text, and leaves the rest to the API server.
	if err := typed.CheckMetadata(doc.Object); err != nil {
		return &bundle.InvalidError{
			File: bundle.ComponentsFile, Line: doc.Line, Reason: fmt.Sprintf("%s: %v", doc, err), Err: err,
		}
	}

	return nil
}

// checkCertificate checks the reference of a CRD to the certificate whose CA cert-manager injects.
func checkCertificate(annotations map[string]string) error {
	reference, found := annotations[v1alpha2.InjectCAAnnotation]
	if found && strings.Count(reference, "/") != 1 {
		return fmt.Errorf("the annotation %s is %q, expected namespace/name", v1alpha2.InjectCAAnnotation, reference)
	}

	return nil
}

// checkImages returns an error if clusterctl refuses a workload because of one of its images, whatever
// the values of variables are. The chart's templates check images that depend on variables. The error is a
// *bundle.InvalidError.
func checkImages(doc *bundle.Document) error {
	if !bundle.NeedsCanonicalImages(doc.Object.Object) {
		return nil
	}

	for i, container := range bundle.Containers(doc.Object.Object) {
		image, isText := container["image"].(string)
		if container["image"] != nil && !isText || bundle.IsCanonicalImage(image) || isVariableImage(doc, i, image) {
			continue
		}

		return refused(doc, imageError(bundle.NestedString(container, "name"), image))
	}

	return nil
}

// isVariableImage reports whether other values of variables change an image of a workload. The index is
// that of the container in bundle.Containers. Values may result in an object, even if others do not.
func isVariableImage(doc *bundle.Document, index int, image string) bool {
	if len(doc.Text.Variables()) == 0 {
		return false
	}

	containers := bundle.Containers(doc.Vary())

	return index >= len(containers) || bundle.NestedString(containers[index], "image") != image
}

// imageError describes why an image is not canonical, with the canonical name if there is one.
func imageError(container, image string) error {
	container, shown := shorten(container), shorten(image)

	if image == "" {
		return fmt.Errorf("the container %q has no image; add one", container)
	}

	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return fmt.Errorf("the container %q has the image %q, which is not a valid name; correct it", container, shown)
	}

	return fmt.Errorf("the container %q has the image %q, which is not a canonical name; write %s",
		container, shown, shorten(named.String()))
}

// refused returns the error for an object that clusterctl refuses.
func refused(doc *bundle.Document, err error) error {
	return &bundle.InvalidError{
		File: bundle.ComponentsFile, Line: doc.Line, Reason: fmt.Sprintf("%s: %v; clusterctl refuses it, too", doc, err),
		Err: err,
	}
}
