package fetch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/signature"
	"github.com/capstan-project/capstan/chartgen/source"
)

// VerifyKeysFlag is the flag of Registry.VerifyKeys.
const VerifyKeysFlag = "chart-repository-verify-keys"

// chartSource returns the source of a provider in the chart repository, which must exist.
func (r *Registry) chartSource(identity bundle.Provider) (*source.Source, error) {
	return source.NewArtifact(r.Charts.Join(identity.Label).String(), identity, r.sourceOptions())
}

// sourceOptions returns how the chart repository is read.
func (r *Registry) sourceOptions() source.OCIOptions {
	if r.VerifyKeys == "" {
		return source.OptionsForClient(r.Client)
	}

	return source.OCIOptions{
		Trust: func(context.Context) (string, error) {
			policy, err := r.chartPolicy()

			return policy.String(), err
		},
		Access: func(context.Context) (source.Access, error) {
			policy, err := r.chartPolicy()
			if err != nil {
				return source.Access{}, err
			}

			verifier, err := policy.Verifier(r.Client)

			return source.Access{Client: r.Client, Verify: verifier.Verify}, err
		},
	}
}

// CheckVerifyKeys returns an error if charts have to be signed and the file with the keys cannot be used.
func (r *Registry) CheckVerifyKeys() error {
	if r.VerifyKeys == "" {
		return nil
	}

	policy, err := r.chartPolicy()
	if err != nil {
		return err
	}

	if _, err := policy.Verifier(nil); err != nil {
		return fmt.Errorf("--%s: %w", VerifyKeysFlag, err)
	}

	return nil
}

// chartPolicy returns what charts are verified with.
func (r *Registry) chartPolicy() (signature.Policy, error) {
	data, err := r.Read(r.VerifyKeys)
	if err != nil {
		return signature.Policy{}, fmt.Errorf("--%s: %w", VerifyKeysFlag, err)
	}

	if len(data) == 0 {
		return signature.Policy{}, errors.New("--" + VerifyKeysFlag + ": the file is empty; it must hold a public key")
	}

	return signature.Policy{
		Keys:     map[string][]byte{filepath.Base(r.VerifyKeys) + ".pub": data},
		KeysFrom: r.VerifyKeys + " (--" + VerifyKeysFlag + ")",
	}, nil
}
