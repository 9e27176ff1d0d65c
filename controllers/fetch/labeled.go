package fetch

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/controllers/access"
)

// LabeledConfigMapsFlag is the operator's flag for Resolver.LabeledConfigMaps.
const LabeledConfigMapsFlag = "use-labeled-configmaps"

// Resolve selects the version that is requested, and returns the source that has it. With
// LabeledConfigMaps, a resource that names no source has two: ConfigMaps, and for what they lack the
// default source. The errors are those of Source and of source.Resolve.
func (r *Resolver) Resolve(
	ctx context.Context, provider v1alpha2.Provider, request source.Request,
) (source.Source, source.Version, error) {
	if r.LabeledConfigMaps && namesNoSource(provider) {
		labeled, err := r.labeled(provider)
		if err != nil {
			return nil, source.Version{}, err
		}

		version, err := source.Resolve(ctx, labeled, request)
		if !isLacking(err) {
			return labeled, version, err
		}
	}

	from, err := r.Source(provider)
	if err != nil {
		return nil, source.Version{}, err
	}

	version, err := source.Resolve(ctx, from, request)

	return from, version, err
}

// List lists the versions of the source that Resolve selects from if no version is requested, as
// source.List does.
func (r *Resolver) List(
	ctx context.Context, provider v1alpha2.Provider,
) ([]source.Version, *bundle.Metadata, error) {
	if r.LabeledConfigMaps && namesNoSource(provider) {
		labeled, err := r.labeled(provider)
		if err != nil {
			return nil, nil, err
		}

		versions, metadata, err := source.List(ctx, labeled)
		if !isLacking(err) {
			return versions, metadata, err
		}
	}

	from, err := r.Source(provider)
	if err != nil {
		return nil, nil, err
	}

	return source.List(ctx, from)
}

// namesNoSource reports whether a resource leaves its source to the operator.
func namesNoSource(provider v1alpha2.Provider) bool { return provider.GetSpec().FetchConfig == nil }

// isLacking reports whether ConfigMaps do not have what is requested, or may not be used by the resource's
// account.
func isLacking(err error) bool {
	return source.IsNotFound(err) || errors.As(err, new(*source.ConditionError)) ||
		errors.As(err, new(*access.ForbiddenError))
}

// labeled returns the ConfigMaps in the resource's namespace that are labeled as versions of its provider,
// as cluster-api-operator uses them without being told to.
func (r *Resolver) labeled(provider v1alpha2.Provider) (*source.ConfigMaps, error) {
	in, err := r.newInputs(provider)
	if err != nil {
		return nil, err
	}

	return &source.ConfigMaps{
		Reader:    in.reader,
		Namespace: provider.GetNamespace(),
		Selector: &metav1.LabelSelector{
			MatchLabels: providerLabels(provider),
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: v1alpha2.ConfigMapVersionLabel, Operator: metav1.LabelSelectorOpExists},
			},
		},
		Provider:  source.Provider(provider.ProviderType(), provider.GetName()),
		NoSecrets: true,
		Known:     r.KnownMetadata,
		User:      r.Readers.User(provider),
	}, nil
}

// providerLabels returns the labels of the ConfigMaps of a provider.
func providerLabels(provider v1alpha2.Provider) map[string]string {
	return map[string]string{
		v1alpha2.ConfigMapTypeLabel: provider.ProviderType().Name(),
		v1alpha2.ConfigMapNameLabel: provider.GetName(),
	}
}

// Hint adds to an error of the default source that labeled ConfigMaps exist, which are not used because users
// who may write ConfigMaps in the namespace could otherwise decide what is installed.
func (r *Resolver) Hint(ctx context.Context, provider v1alpha2.Provider, cause error) error {
	failed := source.IsNotFound(cause) || source.IsUnavailable(cause) ||
		errors.As(cause, new(*UnknownProviderError)) || errors.As(cause, new(*ConfigError))

	if r.LabeledConfigMaps || !failed || !namesNoSource(provider) {
		return cause
	}

	labeled, err := r.labeled(provider)
	if err != nil {
		return cause
	}

	versions, err := labeled.Versions(ctx)
	if err != nil {
		return cause
	}

	labels := providerLabels(provider)

	return fmt.Errorf("%w; %s in the namespace holds %s of this provider: to use it, set "+
		"spec.fetchConfig.selector.matchLabels to {%s: %s, %s: %s}", cause, versions[0].ID, versions[0].Name,
		v1alpha2.ConfigMapTypeLabel, labels[v1alpha2.ConfigMapTypeLabel],
		v1alpha2.ConfigMapNameLabel, labels[v1alpha2.ConfigMapNameLabel])
}
