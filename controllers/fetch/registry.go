package fetch

import (
	"cmp"
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/verify"
)

// Registry is how the operator itself reaches registries: the repository with charts, and any other
// that a resource brings no credentials for.
type Registry struct {
	// Charts is the repository with charts; nil when there is none.
	Charts *oci.Reference
	// Client reaches it.
	Client *oci.Client
	// Credentials and CA are the operator's own; both may be nil.
	Credentials oci.Credentials
	CA          []byte
}

// NewRegistry makes the operator's access to registries of the values of its flags: the repository
// with charts, a docker configuration file, which is read again each time, and a file with the
// certificates of authorities. All may be empty.
func NewRegistry(charts, configFile, caFile string) (*Registry, error) {
	r := &Registry{}

	if charts != "" {
		ref, err := oci.ParseRepository(charts)
		if err != nil {
			return nil, fmt.Errorf("--chart-repository: %w", err)
		}

		r.Charts = &ref
	}

	var err error
	if caFile != "" {
		if r.CA, err = os.ReadFile(caFile); err != nil {
			return nil, fmt.Errorf("--registry-ca: %w", err)
		}
	}

	if configFile != "" {
		if r.Credentials, err = oci.DockerConfigFile(configFile); err != nil {
			return nil, fmt.Errorf("--registry-config: %w", err)
		}
	}

	r.Client, err = oci.NewClient(oci.Options{Credentials: r.Credentials, CA: r.CA})

	return r, err
}

// fromRegistry is the source of fetchConfig.oci or fetchConfig.image.
func (r *Resolver) fromRegistry(provider v1alpha2.Provider, identity bundle.Provider) (source.Source, error) {
	fetch := provider.GetSpec().FetchConfig
	options := source.OCIOptions{Digest: fetch.Digest, VerifySignatures: fetch.Verify != nil}

	options.Access = func(ctx context.Context) (source.Access, error) {
		ref, err := oci.Parse(fetch.OCI + fetch.Image)
		if err != nil {
			return source.Access{}, err
		}

		return r.access(ctx, provider, ref.Registry)
	}
	if fetch.OCI != "" {
		return source.NewArtifact(fetch.OCI, identity, options)
	}

	return source.NewImage(fetch.Image, identity, options)
}

// fromCharts is the source of a provider without fetchConfig when there is a repository with
// charts: that, and what it lacks from elsewhere, if there is an elsewhere.
func (r *Resolver) fromCharts(identity bundle.Provider, elsewhere source.Source) (source.Source, error) {
	charts, err := source.NewArtifact(
		r.Registry.Charts.Join(identity.Label).String(),
		identity,
		source.OptionsForClient(r.Registry.Client),
	)
	if err != nil || elsewhere == nil {
		return charts, err
	}

	return &source.ChartsFirst{Charts: charts, Fallback: elsewhere}, nil
}

// access is how a provider's registry is read.
func (r *Resolver) access(
	ctx context.Context,
	provider v1alpha2.Provider,
	host string,
) (access source.Access, err error) {
	options, err := r.options(ctx, provider, host)
	if err != nil {
		return access, err
	}

	if access.Client, err = oci.NewClient(options); err != nil {
		return access, &ConfigError{fmt.Sprintf("the Secret of spec.fetchConfig.secretRef: %v", err)}
	}

	check := provider.GetSpec().FetchConfig.Verify
	if check == nil {
		return access, nil
	}

	keys, err := r.secret(ctx, types.NamespacedName{Namespace: provider.GetNamespace(), Name: check.SecretRef.Name})
	if err != nil {
		return access, err
	}

	if access.Verifier, err = verify.New(check.Provider, access.Client, keys); err != nil {
		return access, &ConfigError{fmt.Sprintf("spec.fetchConfig.verify, Secret %s: %v", check.SecretRef.Name, err)}
	}

	return access, nil
}

// options have the credentials of the Secret that fetchConfig names, else those among the
// provider's variables, as cluster-api-operator has them, else the pull secrets of the provider's
// ServiceAccount, else the operator's.
func (r *Resolver) options(
	ctx context.Context,
	provider v1alpha2.Provider,
	host string,
) (options oci.Options, err error) {
	if ref := provider.GetSpec().FetchConfig.SecretRef; ref != nil {
		if options, err = r.secretAccess(
			ctx,
			types.NamespacedName{Namespace: provider.GetNamespace(), Name: ref.Name},
			host,
		); err != nil {
			return options, err
		}
	}

	if options.CA == nil {
		options.CA = r.Registry.CA
	}

	if options.Credentials == nil {
		options.Credentials, err = r.otherCredentials(ctx, provider, host)
	}

	return options, err
}

func (r *Resolver) secretAccess(ctx context.Context, name types.NamespacedName, host string) (oci.Options, error) {
	data, err := r.secret(ctx, name)
	if err != nil {
		return oci.Options{}, err
	}

	options, err := oci.OptionsFromSecret(host, data)
	if err != nil {
		err = &ConfigError{fmt.Sprintf("Secret %s: %v", name, err)}
	}

	return options, err
}

// otherCredentials are those that fetchConfig does not name.
func (r *Resolver) otherCredentials(
	ctx context.Context,
	provider v1alpha2.Provider,
	host string,
) (oci.Credentials, error) {
	var all []oci.Credentials

	if name, named := provider.GetSpec().VariablesSecret(provider.GetNamespace()); named {
		if data, err := r.secret(ctx, name); err == nil { // that it does not exist, the step of the variables says
			if own := oci.VariableCredentials(host, data); own != nil {
				all = append(all, own)
			}
		}
	}

	pull, err := r.pullSecrets(ctx, provider, host)
	if err != nil {
		return nil, err
	}

	all = append(all, pull...)
	if r.Registry.Credentials != nil {
		all = append(all, r.Registry.Credentials)
	}

	return oci.ChainCredentials(all...), nil
}

// pullSecrets are the credentials with which the provider's pods would pull.
func (r *Resolver) pullSecrets(
	ctx context.Context,
	provider v1alpha2.Provider,
	host string,
) ([]oci.Credentials, error) {
	account := &corev1.ServiceAccount{}
	name := types.NamespacedName{
		Namespace: provider.GetNamespace(),
		Name:      cmp.Or(provider.GetSpec().ServiceAccountName, "default"),
	}

	err := r.Reader.Get(ctx, name, account)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("read ServiceAccount %s: %w", name, err)
	}

	var all []oci.Credentials

	for _, ref := range account.ImagePullSecrets {
		options, err := r.secretAccess(ctx, types.NamespacedName{Namespace: provider.GetNamespace(), Name: ref.Name}, host)
		if err == nil && options.Credentials != nil { // a pull secret that is not there is no matter, as for pods
			all = append(all, options.Credentials)
		}
	}

	return all, nil
}
