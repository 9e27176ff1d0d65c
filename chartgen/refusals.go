package chartgen

import (
	"fmt"
	"strings"

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

// refused returns the error for an object that clusterctl refuses.
func refused(doc *bundle.Document, err error) error {
	return &bundle.InvalidError{
		File: bundle.ComponentsFile, Line: doc.Line, Reason: fmt.Sprintf("%s: %v; clusterctl refuses it, too", doc, err),
		Err: err,
	}
}
