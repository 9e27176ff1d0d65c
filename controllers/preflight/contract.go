package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// supportedContracts are the Cluster API contracts that providers may have, each with the contracts
// of the providers that a core of that contract can work with, as clusterctl has it.
var supportedContracts = map[string][]string{
	"v1beta1": {"v1beta1"},
	"v1beta2": {"v1beta1", "v1beta2"},
}

// compatible reports whether a core of one contract works with a provider of another.
func compatible(core, provider string) bool {
	return slices.Contains(supportedContracts[core], provider)
}

// contract compares with core, or, for core, with all others that are installed. What is paused
// does not run, so that a change of contract can go through one provider after the other while all
// of them are.
func (c *Checker) contract(ctx context.Context, in Input) error {
	if in.Contract == "" && in.Provider.ProviderType() != v1alpha2.CoreProviderType {
		return nil // a plain Helm chart does not say
	}

	if supportedContracts[in.Contract] == nil {
		return &Problem{Reason: v1alpha2.CAPIVersionIncompatibilityReason, Message: fmt.Sprintf(
			"this version has the Cluster API contract %s; supported are v1beta1 and v1beta2, so choose another version",
			in.Contract,
		)}
	}

	if in.Provider.ProviderType() == v1alpha2.CoreProviderType {
		return c.coreContract(ctx, in)
	}

	core, err := c.core(ctx, in.Provider)
	if err != nil || core == nil || core.GetStatus().Contract == nil || in.Provider.GetSpec().Paused {
		return err
	}

	if contract := *core.GetStatus().Contract; !compatible(contract, in.Contract) {
		return &Problem{Reason: v1alpha2.CAPIVersionIncompatibilityReason, Waiting: true, Message: fmt.Sprintf(
			"this version has the Cluster API contract %s, and core %s works with %s only; choose another version or upgrade core",
			in.Contract,
			contract,
			strings.Join(supportedContracts[contract], " and "),
		)}
	}

	return nil
}

// coreContract refuses a core that installed providers do not work with, unless nothing runs.
func (c *Checker) coreContract(ctx context.Context, in Input) error {
	others, err := c.others(ctx, in.Provider)
	if err != nil {
		return err
	}

	old := incompatibleWith(in.Contract, others)

	running := slices.DeleteFunc(others, paused)
	if len(old) == 0 || len(running) == 0 && in.Provider.GetSpec().Paused {
		return nil
	}

	return &Problem{Reason: v1alpha2.CAPIVersionIncompatibilityReason, Waiting: true, Message: fmt.Sprintf(
		"this core has the Cluster API contract %s, and %s has %s; change that provider first, or set spec.paused of all providers, "+
			"upgrade them, and unpause them",
		in.Contract,
		name(old[0]),
		*old[0].GetStatus().Contract,
	)}
}

// unpaused lets a paused provider run again only when all have contracts that fit together.
func (c *Checker) unpaused(ctx context.Context, in Input) error {
	if in.Provider.GetSpec().Paused || !conditions.IsTrue(in.Provider, v1alpha2.PausedCondition) {
		return nil
	}

	contract := in.Contract
	if in.Provider.ProviderType() != v1alpha2.CoreProviderType {
		core, err := c.core(ctx, in.Provider)
		if err != nil || core == nil || core.GetStatus().Contract == nil {
			return err
		}

		contract = *core.GetStatus().Contract
	}

	others, err := c.others(ctx, in.Provider)
	if err != nil {
		return err
	}

	old := incompatibleWith(contract, others)
	if len(old) == 0 {
		return nil
	}

	return &Problem{Reason: v1alpha2.CAPIVersionIncompatibilityReason, Waiting: true, Message: fmt.Sprintf(
		"it stays paused while %s has the Cluster API contract %s, which core %s does not work with; upgrade that provider first",
		name(old[0]),
		*old[0].GetStatus().Contract,
		contract,
	)}
}

// others are all providers but core and the given one. They must not be changed.
func (c *Checker) others(ctx context.Context, provider v1alpha2.Provider) ([]v1alpha2.Provider, error) {
	var others []v1alpha2.Provider

	for _, t := range v1alpha2.ProviderTypes()[1:] {
		list := t.NewList()
		if err := c.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}

		for _, p := range list.GetItems() {
			if p.GetUID() != provider.GetUID() && together(p, provider) {
				others = append(others, p)
			}
		}
	}

	return others, nil
}

// incompatibleWith are the installed providers that a core of the contract does not work with.
func incompatibleWith(core string, providers []v1alpha2.Provider) []v1alpha2.Provider {
	var old []v1alpha2.Provider

	for _, p := range providers {
		if contract := p.GetStatus().Contract; contract != nil && !compatible(core, *contract) {
			old = append(old, p)
		}
	}

	return old
}

func paused(p v1alpha2.Provider) bool {
	return p.GetSpec().Paused && conditions.IsTrue(p, v1alpha2.PausedCondition)
}

func name(p v1alpha2.Provider) string {
	return fmt.Sprintf("%s %s/%s", p.ProviderType(), p.GetNamespace(), p.GetName())
}
