package crds

import (
	"fmt"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/problem"
)

// Owned returns the problem of a CRD that belongs to something else than the provider, by its label, whose chart
// includes the CRD as well.
func Owned(name, owner, provider string) error {
	return problem.Fail(v1alpha2.CRDConflictReason, "CustomResourceDefinition %s belongs to %s, but %s includes it as "+
		"well, so nothing was applied; remove one of the two, add the CRD to spec.crds.unmanaged, or hand it over by "+
		"setting the annotation %s: %[3]s on it", name, owner, provider, v1alpha2.AdoptCRDAnnotation)
}

// Refused returns the problem of a CRD that the API server refuses.
func Refused(name string, err error) error {
	const kind = "CustomResourceDefinition"

	refused := problem.Fail(v1alpha2.CRDsNotReadyReason, "%s %s was refused: %s", kind, name, object.Reason(kind, err))
	refused.Cause = err

	return refused
}

// Missing returns the problem of a CRD that does not exist, and that a version of the provider needs, and does not
// apply.
func Missing(name, version string) error {
	return &problem.Error{
		Reason: v1alpha2.WaitingForCRDsReason, Outcome: problem.Waiting,
		Message: fmt.Sprintf("CustomResourceDefinition %s, which %s needs, is not managed by Capstan and does not exist; "+
			"ask its owner to install it", name, version),
	}
}

// maxReasons bounds how many reasons a message names.
const maxReasons = 3

// Incompatible returns the problem of a CRD that a version of the provider does not apply, and why its managers cannot
// work with it.
func Incompatible(name, version string, reasons []string) error {
	return &problem.Error{
		Reason: v1alpha2.IncompatibleCRDReason,
		Message: fmt.Sprintf("CustomResourceDefinition %s is not managed by Capstan and is incompatible with %s: it %s; "+
			"use a version of the provider that is compatible with it, or ask its owner to change it",
			name, version, object.List(reasons, maxReasons)),
	}
}

// newer returns the problem of a CRD that was applied for a newer version of the provider, and why the managers of the
// version cannot work with it.
func newer(name, version, applied string, reasons []string) error {
	return problem.Refuse(v1alpha2.UnsupportedProviderDowngradeReason,
		"%s cannot work with CustomResourceDefinition %s of %s, which is never downgraded: it %s; use a version that can",
		version, name, applied, object.List(reasons, maxReasons))
}
