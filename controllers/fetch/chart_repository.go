package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/verify"
)

// ChartOptions configure which charts of the chart repository are used.
type ChartOptions struct {
	// AnyOrigin accepts charts that were not built from the catalog's source.
	AnyOrigin bool
	// Fallback uses the catalog's source while the chart repository cannot be read.
	Fallback bool
	// VerifyKeys is the path of a file with cosign's public keys, one of which must have signed each
	// chart; empty if no signature is required. The file is read again for each use.
	VerifyKeys string
}

// VerifyKeysFlag is the flag of VerifyKeys.
const VerifyKeysFlag = "chart-repository-verify-keys"

// BindFlags adds the operator's flags for the options.
func (o *ChartOptions) BindFlags(set *pflag.FlagSet) {
	set.BoolVar(
		&o.AnyOrigin,
		"trust-chart-repository",
		false,
		"Use all charts in the chart repository. Otherwise, for a provider in the catalog, only charts are used that "+
			"were built from the catalog's source.",
	)
	set.BoolVar(
		&o.Fallback,
		"chart-repository-fallback",
		false,
		"Use the catalog's source while the chart repository cannot be read. Otherwise that is an error, and the "+
			"catalog's source is used only for charts that the repository lacks.",
	)
	set.StringVar(
		&o.VerifyKeys,
		VerifyKeysFlag,
		"",
		"File with a public key of cosign, with which the charts in the chart repository must be signed. It cannot be "+
			"combined with --push-charts.",
	)
}

// Check returns an error if the options cannot be used for an operator that pushes charts or does not.
func (o *ChartOptions) Check(push bool) error {
	if o.VerifyKeys == "" {
		return nil
	}

	if push {
		return fmt.Errorf("--%s cannot be combined with --push-charts: the operator does not sign the charts that it pushes",
			VerifyKeysFlag)
	}

	policy, err := o.policy()
	if err != nil {
		return err
	}

	if _, err := policy.Verifier(nil); err != nil {
		return fmt.Errorf("--%s: %w", VerifyKeysFlag, err)
	}

	return nil
}

// policy returns what charts are verified with.
func (o *ChartOptions) policy() (verify.Policy, error) {
	data, err := os.ReadFile(o.VerifyKeys)
	if err != nil {
		return verify.Policy{}, fmt.Errorf("--%s: %w", VerifyKeysFlag, err)
	}

	if len(data) == 0 {
		return verify.Policy{}, errors.New("--" + VerifyKeysFlag + ": the file is empty; it must hold a public key")
	}

	return verify.Policy{
		Keys:     map[string][]byte{filepath.Base(o.VerifyKeys) + ".pub": data},
		KeysFrom: o.VerifyKeys + " (--" + VerifyKeysFlag + ")",
	}, nil
}

// sourceOptions returns how the chart repository is read.
func (r *Registry) sourceOptions() source.OCIOptions {
	if r.ChartOptions.VerifyKeys == "" {
		return source.OptionsForClient(r.Client)
	}

	return source.OCIOptions{
		Trust: func(context.Context) (string, error) {
			policy, err := r.ChartOptions.policy()

			return policy.String(), err
		},
		Access: func(context.Context) (source.Access, error) {
			policy, err := r.ChartOptions.policy()
			if err != nil {
				return source.Access{}, err
			}

			verifier, err := policy.Verifier(r.Client)

			return source.Access{Client: r.Client, Verifier: verifier}, err
		},
	}
}

// chartSource returns a source that prefers the chart repository, which must exist, and gets from
// fallback what the repository lacks. fallback is nil for a provider that the catalog does not list:
// then all charts in the repository are used.
func (r *Resolver) chartSource(identity bundle.Provider, fallback source.Source) (source.Source, error) {
	charts, err := source.NewArtifact(
		r.Registry.Charts.Join(identity.Label).String(),
		identity,
		r.Registry.sourceOptions(),
	)
	if err != nil || fallback == nil {
		return charts, err
	}

	return &source.ChartsFirst{
		Charts:          charts,
		Fallback:        fallback,
		AnyOrigin:       r.Registry.ChartOptions.AnyOrigin,
		FallBackOnError: r.Registry.ChartOptions.Fallback,
	}, nil
}

// disallowed is the source in the catalog if the policy does not allow to contact it. Charts that were
// built from it can still be in the chart repository.
type disallowed struct {
	source.Remote
	err error
}

// Versions returns the policy's error.
func (d *disallowed) Versions(context.Context) ([]source.Version, error) { return nil, d.err }

// Fetch returns the policy's error.
func (d *disallowed) Fetch(context.Context, source.Version) (*bundle.Bundle, error) {
	return nil, d.err
}

// Metadata returns the policy's error.
func (d *disallowed) Metadata(context.Context, source.Version) ([]byte, error) { return nil, d.err }
