package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/catalog"
	"github.com/capstan-project/capstan/cmd/capstan/internal/adopt/variables"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/plan"
)

// proposal is how an installed provider would be adopted.
type proposal struct {
	Installation

	// exists is set if the resource is in the cluster already.
	exists bool
	// Secret holds the variables; nil if the resource needs none, or has a Secret.
	secret *corev1.Secret
	// fromEnvironment are the variables, among those of the Secret, that come from the user's environment or
	// configuration of clusterctl, because the cluster does not show them.
	fromEnvironment []string
	// unknown are the variables that the cluster does not show.
	unknown []variables.Unknown

	difference difference
}

// proposer makes proposals.
type proposer struct {
	cluster *cli.Cluster
	planner *cli.Planner
	// user is clusterctl's configuration of the user.
	user *catalog.Catalog
	// contextLines is the number of unchanged lines around changes.
	contextLines int
}

// propose finds out how an installed provider would be adopted.
func (p *proposer) propose(ctx context.Context, installation Installation, existing []v1alpha2.Provider) (
	*proposal, error,
) {
	result := &proposal{Installation: installation}

	for _, e := range existing {
		if v1alpha2.Label(e) != v1alpha2.Label(installation.Provider) {
			continue
		}

		if e.GetNamespace() != installation.Provider.GetNamespace() {
			return nil, fmt.Errorf("%s exists, but the provider is installed in namespace %s; delete that resource, which "+
				"removes nothing that it has not installed", v1alpha2.FullName(e), installation.Provider.GetNamespace())
		}

		result.exists = true
		result.Provider = e
	}

	chart, err := p.chart(ctx, result.Provider)
	if err != nil {
		return nil, err
	}

	if _, hasSecret := result.Provider.GetSpec().VariablesSecret(""); !chart.Plain() && !hasSecret && !result.exists {
		if err := p.recoverVariables(ctx, result, chart); err != nil {
			return nil, err
		}
	}

	return result, p.compare(ctx, result)
}

// chart returns the chart of the provider's version. A provider that only the user's configuration of clusterctl knows
// gets its address from there.
func (p *proposer) chart(ctx context.Context, provider v1alpha2.Provider) (*plan.Chart, error) {
	chart, err := p.planner.Chart(ctx, provider)
	if !errors.As(err, new(*fetch.UnknownProviderError)) {
		return chart, err
	}

	entry, listed := p.user.Find(provider.ProviderType(), provider.GetName())
	config := &v1alpha2.FetchConfiguration{OCI: entry.Artifact(), Image: entry.Image()}

	switch {
	case !listed:
		return nil, err
	case strings.HasPrefix(entry.URL, "https://"):
		config.URL = entry.URL
	case config.OCI == "" && config.Image == "":
		return nil, err
	}

	provider.GetSpec().FetchConfig = config

	return p.planner.Chart(ctx, provider)
}

// recoverVariables finds the variables of a provider in its objects, and puts them into the Secret of the proposal.
func (p *proposer) recoverVariables(ctx context.Context, result *proposal, chart *plan.Chart) error {
	template, err := variables.NewTemplate(chart.Chart, result.Provider.GetNamespace())
	if err != nil {
		return err
	}

	live := map[*unstructured.Unstructured]*unstructured.Unstructured{}

	for _, o := range template.Objects() {
		if live[o], err = p.read(ctx, o, result.Provider.GetNamespace()); err != nil {
			return err
		}
	}

	found := template.Recover(func(o *unstructured.Unstructured) *unstructured.Unstructured { return live[o] })

	for _, unknown := range found.Unknown {
		value := p.user.Variable(unknown.Name)
		if value == "" {
			result.unknown = append(result.unknown, unknown)
			continue
		}

		found.Values[unknown.Name] = value
		result.fromEnvironment = append(result.fromEnvironment, unknown.Name)
	}

	if len(found.Values) > 0 {
		result.setSecret(found.Values)
	}

	return nil
}

// read returns an object of the cluster as it is; nil if it does not exist.
func (p *proposer) read(ctx context.Context, o *unstructured.Unstructured, namespace string) (
	*unstructured.Unstructured, error,
) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())

	key := client.ObjectKey{Name: o.GetName()}
	if namespaced, err := p.cluster.Client.IsObjectNamespaced(o); err == nil && namespaced {
		key.Namespace = cmp.Or(o.GetNamespace(), namespace)
	}

	err := p.cluster.Client.Get(ctx, key, live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
	}

	return live, nil
}

// setSecret adds a Secret with variables to the proposal.
func (p *proposal) setSecret(values map[string]string) {
	p.secret = &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Provider.GetNamespace(), Name: v1alpha2.Label(p.Provider) + "-variables",
		},
		StringData: values,
	}
	p.Provider.GetSpec().SecretName = p.secret.Name
}

// missing returns the names of the variables without which the provider cannot be adopted.
func (p *proposal) missing() []string {
	var names []string

	for _, u := range p.unknown {
		if u.Required {
			names = append(names, u.Name)
		}
	}

	return names
}

// manifests returns the objects of the proposal as users keep them in Git.
func (p *proposal) manifests() []client.Object {
	var all []client.Object

	if p.secret != nil {
		all = append(all, p.secret)
	}

	provider := p.Provider.ProviderType().New()
	provider.GetObjectKind().SetGroupVersionKind(v1alpha2.GroupVersion.WithKind(string(provider.ProviderType())))
	provider.SetNamespace(p.Provider.GetNamespace())
	provider.SetName(p.Provider.GetName())
	p.Provider.GetSpec().DeepCopyInto(provider.GetSpec())

	return append(all, provider)
}

// known returns the names of the variables in the Secret, sorted.
func (p *proposal) known() []string {
	if p.secret == nil {
		return nil
	}

	return slices.Sorted(maps.Keys(p.secret.StringData))
}
