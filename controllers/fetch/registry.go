package fetch

import (
	"cmp"
	"context"
	"fmt"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/signature"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/controllers/access"
)

// Registry is the operator's own access to OCI registries: to the chart repository, and to any
// registry for which a resource has no credentials.
type Registry struct {
	// Charts is the chart repository, in which resources without fetchConfig have their source; nil if there is none.
	Charts *oci.Reference
	// VerifyKeys is the path of a file with cosign's public keys, one of which must have signed each chart
	// of the chart repository; empty if no signature is required. Read reads it, again for each use.
	VerifyKeys string
	Read       ReadFile
	// Client reads the chart repository.
	Client *oci.Client
	// Credentials are the operator's own; nil for none.
	Credentials transport.Credentials
	// CA holds the certificates, in PEM, of additional authorities to trust; nil for none.
	CA []byte
}

// ReadFile reads a file that a flag names.
type ReadFile func(path string) ([]byte, error)

// NewRegistry returns the access to registries and to the chart repository, which may be empty. credentials and
// certificates of authorities may be nil.
func NewRegistry(charts string, credentials transport.Credentials, ca []byte) (*Registry, error) {
	r := &Registry{Credentials: credentials, CA: ca}

	if charts != "" {
		ref, err := oci.ParseRepository(charts)
		if err != nil {
			return nil, fmt.Errorf("--chart-repository: %w", err)
		}

		r.Charts = &ref
	}

	if r.Charts != nil {
		credentials = withTLS(credentials, serverOf(*r.Charts))
	}

	var err error

	r.Client, err = oci.NewClient(transport.Options{Credentials: credentials, CA: ca})

	return r, err
}

// registrySource returns the source of fetchConfig.oci or fetchConfig.image.
func (in *inputs) registrySource(identity bundle.Provider) (*source.Source, error) {
	config := in.provider.GetSpec().FetchConfig
	options := source.OCIOptions{
		Digest: config.Digest,
		Access: func(ctx context.Context) (source.Access, error) {
			ref, err := oci.Parse(cmp.Or(config.OCI, config.Image))
			if err != nil {
				return source.Access{}, err
			}

			return in.access(ctx, ref)
		},
	}

	if config.Verify != nil {
		options.Trust = func(ctx context.Context) (string, error) {
			policy, err := in.policy(ctx)

			return policy.String(), err
		}
	}

	if config.OCI != "" {
		return source.NewArtifact(config.OCI, identity, options)
	}

	return source.NewImage(config.Image, identity, options)
}

// access returns how to read and verify what a provider's registry holds.
func (in *inputs) access(ctx context.Context, ref oci.Reference) (source.Access, error) {
	options, err := in.registryOptions(ctx, ref)
	if err != nil {
		return source.Access{}, err
	}

	ociClient, err := oci.NewClient(options)
	if err != nil {
		return source.Access{}, err
	}

	verification := in.provider.GetSpec().FetchConfig.Verify
	if verification == nil {
		return source.Access{Client: ociClient}, nil
	}

	policy, err := in.policy(ctx)
	if err != nil {
		return source.Access{}, err
	}

	verifier, err := policy.Verifier(ociClient)
	if err != nil {
		return source.Access{}, refuse("spec.fetchConfig.verify, %s: %v", policy.KeysFrom, err)
	}

	return source.Access{Client: ociClient, Verify: verifier.Verify}, nil
}

// policy reads what spec.fetchConfig.verify, which must be set, requires.
func (in *inputs) policy(ctx context.Context) (signature.Policy, error) {
	verification := in.provider.GetSpec().FetchConfig.Verify
	name := verification.SecretRef.Name

	keys, err := access.ReadSecret(ctx, in.reader, access.SecretReference{
		NamespacedName: in.local(name),
		Content:        "the keys for verification",
		Field:          "spec.fetchConfig.verify.secretRef",
	})
	if err != nil {
		return signature.Policy{}, err
	}

	return signature.Policy{
		Keys:     keys,
		KeysFrom: "Secret " + name,
	}, nil
}

// catalogAccess returns how to read a registry in the catalog.
func (in *inputs) catalogAccess(_ context.Context, ref oci.Reference) (source.Access, error) {
	ociClient, err := oci.NewClient(in.catalogOptions(ref))

	return source.Access{Client: ociClient}, err
}
