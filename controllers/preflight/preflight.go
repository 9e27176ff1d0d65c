// Package preflight checks whether a provider may be installed, before anything of it is applied.
// The checks read what the operator already knows of the cluster; none asks the network.
package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Problem is why a provider may not be installed.
type Problem struct {
	// Reason of the condition PreflightCheckPassed.
	Reason string
	// Message says what is wrong and what to do.
	Message string
	// Waiting says that another resource, which is watched, will solve it; otherwise a person must.
	Waiting bool
	// CRDs says that the provider's CRDs may go ahead: all else is well, core is installed, and
	// only its health is awaited.
	CRDs bool
}

func (p *Problem) Error() string { return p.Message }

// Input is what the checks look at.
type Input struct {
	Provider v1alpha2.Provider
	// Mapper knows the APIs that the target serves.
	Mapper meta.RESTMapper
	// Contract of the version to be installed.
	Contract string
	// RequiredKinds are kinds of the provider's objects that others must serve, as
	// Kind.version.group.
	RequiredKinds []string
	// MissingVariables have no value and no default.
	MissingVariables []string
}

// NameField is the field by which resources are found in all namespaces.
const NameField = "metadata.name"

// Checker runs the checks.
type Checker struct {
	// Reader reads provider resources from the watches, which have NameField as an index.
	Reader client.Reader
}

// check is one rule; it returns a *Problem, or another error when it could not tell.
type check func(c *Checker, ctx context.Context, in Input) error

// identity are the checks that need only the resources; they come first because they cost nothing
// and no version or chart changes their result.
var identity = []check{(*Checker).coreName, (*Checker).singleInstance}

// installation are the checks of what is about to be installed. What a person must mend comes
// before what only takes time.
var installation = []check{
	(*Checker).contract,
	(*Checker).unpaused,
	(*Checker).variables,
	(*Checker).apis,
	(*Checker).coreReady,
}

// Identity checks that the resource may exist at all. Its error is a *Problem, or says why the
// check was not possible.
func (c *Checker) Identity(ctx context.Context, provider v1alpha2.Provider) error {
	return c.run(ctx, identity, Input{Provider: provider})
}

// Installation checks that the version may be installed here and now. Its error is a *Problem, or
// says why the check was not possible.
func (c *Checker) Installation(ctx context.Context, in Input) error {
	return c.run(ctx, installation, in)
}

// Contract checks that a version with the contract would fit core and the others. Its error is as
// Installation's.
func (c *Checker) Contract(ctx context.Context, provider v1alpha2.Provider, contract string) error {
	return c.contract(ctx, Input{Provider: provider, Contract: contract})
}

func (c *Checker) run(ctx context.Context, checks []check, in Input) error {
	for _, check := range checks {
		if err := check(c, ctx, in); err != nil {
			return err
		}
	}

	return nil
}

func (c *Checker) coreName(_ context.Context, in Input) error {
	if in.Provider.ProviderType() != v1alpha2.CoreProviderType || in.Provider.GetName() == v1alpha2.CoreProviderName {
		return nil
	}

	return &Problem{Reason: v1alpha2.IncorrectCoreProviderNameReason, Message: fmt.Sprintf(
		"the CoreProvider must be called %s, not %s; create it under that name and delete this one",
		v1alpha2.CoreProviderName,
		in.Provider.GetName(),
	)}
}

// singleInstance lets the oldest resource of a provider have it: its CRDs and webhooks serve the
// whole cluster.
func (c *Checker) singleInstance(ctx context.Context, in Input) error {
	list := in.Provider.ProviderType().NewList()
	if err := c.Reader.List(
		ctx,
		list,
		client.MatchingFields{NameField: in.Provider.GetName()},
		client.UnsafeDisableDeepCopy,
	); err != nil {
		return err
	}

	same := slices.DeleteFunc(list.GetItems(), func(p v1alpha2.Provider) bool { return !together(p, in.Provider) })
	slices.SortFunc(same, func(a, b v1alpha2.Provider) int {
		return cmp.Or(
			a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()),
		)
	})

	if len(same) == 0 || same[0].GetNamespace() == in.Provider.GetNamespace() {
		return nil
	}

	return &Problem{Reason: v1alpha2.MoreThanOneProviderInstanceExistsReason, Waiting: true, Message: fmt.Sprintf(
		"%s %s already exists in namespace %s, and a cluster can have each provider once; delete one of the two",
		in.Provider.ProviderType(), in.Provider.GetName(), same[0].GetNamespace())}
}

// coreReady makes every provider wait for core.
func (c *Checker) coreReady(ctx context.Context, in Input) error {
	if in.Provider.ProviderType() == v1alpha2.CoreProviderType {
		return nil
	}

	core, err := c.core(ctx, in.Provider)
	if err != nil {
		return err
	}

	waiting := &Problem{Reason: v1alpha2.WaitingForCoreProviderReadyReason, Waiting: true}

	switch {
	case core == nil:
		waiting.Message = fmt.Sprintf(
			"waiting for the CoreProvider %s; there is none in any namespace, so create one",
			v1alpha2.CoreProviderName,
		)

		return waiting
	case !conditions.IsReady(core):
		waiting.Message = fmt.Sprintf("waiting for CoreProvider %s/%s to be ready", core.GetNamespace(), core.GetName())
		waiting.CRDs = conditions.IsTrue(core, v1alpha2.ProviderInstalledCondition)

		return waiting
	}

	return nil
}

func (c *Checker) variables(_ context.Context, in Input) error {
	if len(in.MissingVariables) == 0 {
		return nil
	}

	where := "set spec.configSecret to a Secret that has them"
	if secret, named := in.Provider.GetSpec().VariablesSecret(in.Provider.GetNamespace()); named {
		where = fmt.Sprintf("add them to Secret %s", secret)
	}

	return &Problem{Reason: v1alpha2.MissingVariablesReason, Message: fmt.Sprintf(
		"required variables have no value: %s; %s", strings.Join(in.MissingVariables, ", "), where)}
}

// apis looks for the kinds that others must bring, which in practice are cert-manager's.
func (c *Checker) apis(_ context.Context, in Input) error {
	var missing []string

	for _, required := range in.RequiredKinds {
		gvk, _ := schema.ParseKindArg(required)
		if gvk == nil {
			return fmt.Errorf("the chart requires the kind %q, which is not of the form Kind.version.group", required)
		}

		_, err := in.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			missing = append(missing, required)
		} else if err != nil {
			return fmt.Errorf("look up the API of %s: %w", required, err)
		}
	}

	if len(missing) == 0 {
		return nil
	}

	return &Problem{Reason: v1alpha2.CertManagerMissingReason, Message: fmt.Sprintf(
		"the cluster does not serve %s, which the provider needs; install cert-manager", strings.Join(missing, ", "))}
}

// together reports whether two providers are for the same cluster.
func together(a, b v1alpha2.Provider) bool { return v1alpha2.Cluster(a) == v1alpha2.Cluster(b) }

// core is the CoreProvider of the provider's cluster, which must not be changed; nil when there is
// none.
func (c *Checker) core(ctx context.Context, provider v1alpha2.Provider) (v1alpha2.Provider, error) {
	list := &v1alpha2.CoreProviderList{}
	if err := c.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}

	for i := range list.Items {
		if list.Items[i].Name == v1alpha2.CoreProviderName && together(&list.Items[i], provider) {
			return &list.Items[i], nil
		}
	}

	return nil, nil
}

// WorksWith are the contracts of the providers that a core of the given contract works with.
func WorksWith(core string) []string { return slices.Clone(supportedContracts[core]) }
