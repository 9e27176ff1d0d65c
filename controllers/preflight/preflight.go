// Package preflight checks whether a provider may be installed, before any of it is applied. The
// checks read only caches and send no requests.
package preflight

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// NameField is the index of provider resources by name, across namespaces.
const NameField = "metadata.name"

// Checker runs the checks. All its methods return a *problem.Error if a check fails, and any other error
// if a check could not be made.
type Checker struct {
	// Client reads provider resources from a cache with the index NameField.
	Client client.Reader
	// Cluster tells the clusters of providers apart.
	Cluster ClusterOf
	// Namespace is the operator's; empty if it is unknown.
	Namespace string
}

// Input describes an installation to check.
type Input struct {
	Provider v1alpha2.Provider
	// Mapper maps the kinds that the target serves.
	Mapper meta.RESTMapper
	// Contract is the Cluster API contract of the version.
	Contract string
	// RequiredKinds are the kinds of the provider's objects that something else must serve, as
	// Kind.version.group.
	RequiredKinds []string
	// MissingVariables are the required variables that have no value.
	MissingVariables []string
}

// Installation checks whether a version may be installed, apart from CoreReady: an installed provider
// does not depend on core's health. It returns the required kinds that the cluster does not serve.
func (c *Checker) Installation(ctx context.Context, in Input) (missing []schema.GroupKind, err error) {
	if err := c.Contracts(ctx, in.Provider, in.Contract); err != nil {
		return nil, err
	}

	if err := c.Variables(in.Provider, in.MissingVariables); err != nil {
		return nil, err
	}

	if missing, err := c.RequiredAPIs(in.Mapper, in.RequiredKinds); err != nil {
		return missing, err
	}

	return nil, c.Dependencies(ctx, in.Provider)
}

// Variables checks that no required variable is missing.
func (*Checker) Variables(provider v1alpha2.Provider, missing []string) error {
	if len(missing) == 0 {
		return nil
	}

	fix := "set spec.secretName to a Secret that has them"
	if secret, named := provider.GetSpec().VariablesSecret(provider.GetNamespace()); named {
		fix = fmt.Sprintf("add them to Secret %s", secret)
	}

	return problem.Refuse(v1alpha2.MissingVariablesReason,
		"required variables have no value: %s; %s", strings.Join(missing, ", "), fix)
}

// apiRetry is how long to wait before looking for a missing API again: it need not be that of a CRD, and one is
// found a little later than its CRD is established.
const apiRetry = 10 * time.Second

// certManagerGroups are the API groups that cert-manager serves.
var certManagerGroups = map[string]bool{"cert-manager.io": true, "acme.cert-manager.io": true}

// hasCertManager reports whether cert-manager is installed, in whatever version of its API.
func hasCertManager(mapper meta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"})
	if meta.IsNoMatchError(err) {
		return false, nil
	}

	if err != nil {
		return false, fmt.Errorf("look up the API of cert-manager: %w", err)
	}

	return true, nil
}

// RequiredAPIs checks that the target serves the kinds, given as Kind.version.group. Those of real providers are
// cert-manager's. It returns those that are missing.
func (*Checker) RequiredAPIs(mapper meta.RESTMapper, required []string) (kinds []schema.GroupKind, err error) {
	var missing, others []string

	for _, kind := range required {
		gvk, _ := schema.ParseKindArg(kind)
		if gvk == nil {
			return nil, fmt.Errorf("the chart requires the kind %q, which does not have the form Kind.version.group", kind)
		}

		_, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			missing = append(missing, kind)
			kinds = append(kinds, gvk.GroupKind())

			if !certManagerGroups[gvk.Group] {
				others = append(others, kind)
			}

			continue
		}

		if err != nil {
			return nil, fmt.Errorf("look up the API of %s: %w", kind, err)
		}
	}

	if len(missing) == 0 {
		return nil, nil
	}

	reason, fixes := v1alpha2.WaitingForCRDsReason, []string(nil)

	if len(others) < len(missing) {
		installed, err := hasCertManager(mapper)

		switch {
		case err != nil:
			return nil, err
		case installed:
			fixes = []string{"install a version of cert-manager that serves this, or choose another version of the provider"}
		default:
			reason, fixes = v1alpha2.CertManagerMissingReason, []string{"install cert-manager"}
		}
	}

	if len(others) > 0 {
		fixes = append(fixes, fmt.Sprintf(
			"install what serves %s, or remove its objects with spec.patches", strings.Join(others, ", ")))
	}

	unserved := problem.Await(reason, "the cluster does not serve %s, which the provider needs; %s",
		strings.Join(missing, ", "), strings.Join(fixes, "; "))
	unserved.Until = time.Now().Add(apiRetry)

	return kinds, unserved
}
