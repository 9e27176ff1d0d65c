package setup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/plan"
)

// setupPlan is what has to be done to a cluster.
type setupPlan struct {
	// certManager and operator are nil if they do not have to be installed.
	certManager *chartRelease
	operator    *operator
	// certManagerNote and operatorNote say what is installed from where, or why nothing is.
	certManagerNote, operatorNote string

	providers []*provider
}

// provider is one to install.
type provider struct {
	resource v1alpha2.Provider
	// exists is set if the resource is in the cluster already.
	exists bool
	// variables are those of the provider's chart, sorted by name. Of a provider that exists, they are those that have
	// another value in the cluster than the one that is given.
	variables []variable
	// flags are those with which `capstan providers` finds it.
	flags string
	// foreign is the Secret that the resource names if it is not the one that the command writes.
	foreign string
}

// plan finds out what has to be done. It changes nothing.
func (o *options) plan(ctx context.Context, cluster *cli.Cluster) (*setupPlan, error) {
	p := &setupPlan{}

	existing, err := cluster.AllProviders(ctx)
	if err != nil {
		return nil, err
	}

	hasCore := slices.ContainsFunc(existing, func(p v1alpha2.Provider) bool {
		return p.ProviderType() == v1alpha2.CoreProviderType && isLocal(p)
	})

	selected, err := o.selected.wanted(!hasCore)
	if err != nil {
		return nil, err
	}

	if p.certManager, p.certManagerNote, err = o.planCertManager(ctx, cluster); err != nil {
		return nil, fmt.Errorf("cert-manager: %w", err)
	}

	if p.operator, p.operatorNote, err = o.planOperator(ctx, cluster); err != nil {
		return nil, fmt.Errorf("the operator: %w", err)
	}

	return p, o.planProviders(ctx, cluster, p, selected, existing)
}

// isLocal reports whether a provider is installed in the cluster of its resource. What a resource installs in another
// cluster is of no account for this one.
func isLocal(p v1alpha2.Provider) bool { return p.GetSpec().KubeConfig == nil }

// checkName returns an error if a resource for another cluster has the name of a new one.
func checkName(existing []v1alpha2.Provider, added v1alpha2.Provider) error {
	for _, e := range existing {
		if !isLocal(e) && v1alpha2.FullName(e) == v1alpha2.FullName(added) {
			return fmt.Errorf("%s exists for another cluster (spec.kubeConfig); for this one, create a resource in another "+
				"namespace", v1alpha2.FullName(e))
		}
	}

	return nil
}

// planProviders reads the charts of the selected providers and what variables they need.
func (o *options) planProviders(
	ctx context.Context, cluster *cli.Cluster, p *setupPlan, selected []wanted, existing []v1alpha2.Provider,
) error {
	sources, err := newVariableSources(o.variables, o.planner.Config.Options.ConfigFile)
	if err != nil {
		return err
	}

	if p.operator != nil {
		config, err := p.operator.settings()
		if err != nil {
			return err
		}

		o.planner.NewOperator = config
	}

	planner, err := o.planner.Planner(ctx, o.Options, cluster)
	if err != nil {
		return err
	}

	for _, w := range selected {
		added, err := o.newProvider(ctx, planner, w, existing)
		if err != nil {
			return fmt.Errorf("%s: %w", w.label(), err)
		}

		sources.set(added.variables)
		added.flags = sourceFlags(o.planner)

		if added.exists {
			if err := added.keepChanged(ctx, cluster); err != nil {
				return fmt.Errorf("%s: %w", w.label(), err)
			}
		}

		p.providers = append(p.providers, added)
	}

	return nil
}

// newProvider returns the provider of a type and name: the one in the cluster, or a new one with the version that
// matches. A cluster can have it only once.
func (o *options) newProvider(
	ctx context.Context, planner *cli.Planner, w wanted, existing []v1alpha2.Provider,
) (*provider, error) {
	for _, e := range existing {
		if isLocal(e) && v1alpha2.Label(e) == w.label() {
			return o.existingProvider(ctx, planner, w, e)
		}
	}

	p := &provider{resource: w.kind.New()}
	p.resource.GetObjectKind().SetGroupVersionKind(w.kind.GroupVersionKind())
	p.resource.SetName(w.name)
	p.resource.GetSpec().Version = w.version

	// No resource in this namespace can be the source, and the chart's default namespace is unknown yet.
	p.resource.SetNamespace(metav1.NamespaceDefault)

	found, err := planner.Chart(ctx, p.resource)
	if err != nil {
		return nil, err
	}

	namespace := found.Chart.Metadata.Annotations[chartgen.AnnotationDefaultNamespace]
	p.resource.SetNamespace(cmp.Or(namespace, w.label()+"-system"))
	p.resource.GetSpec().Version = found.Version()

	if err := checkName(existing, p.resource); err != nil {
		return nil, err
	}

	planner.Assume(p.resource, found.Contract())

	p.variables, err = variablesOf(found)

	return p, err
}

// existingProvider returns the provider of a resource in the cluster, with the variables of its chart.
func (o *options) existingProvider(
	ctx context.Context, planner *cli.Planner, w wanted, resource v1alpha2.Provider,
) (*provider, error) {
	if err := w.checkVersion(resource); err != nil {
		return nil, err
	}

	p := &provider{resource: resource, exists: true}

	found, err := planner.Chart(ctx, resource)
	if err == nil {
		p.variables, err = variablesOf(found)
	}

	if err != nil {
		o.Warnf("%s: values of its variables are not compared with those that are given: %s",
			v1alpha2.FullName(resource), err)
	}

	return p, nil
}

// variablesOf returns the variables of a chart, sorted by name.
func variablesOf(found *plan.Chart) ([]variable, error) {
	required, all, err := chartgen.RequiredVariables(found.Chart)
	if err != nil {
		return nil, err
	}

	return cli.Map(all, func(name string) variable {
		return variable{name: name, required: slices.Contains(required, name)}
	}), nil
}

// missing returns the names of the required variables that have no value.
func (p *provider) missing() []string {
	var names []string

	for _, v := range p.variables {
		if v.isMissing() {
			names = append(names, v.name)
		}
	}

	return names
}

// incomplete returns an error, which says what to do, if required variables have no value.
func incomplete(providers []*provider, advice string) error {
	var all []string

	for _, p := range providers {
		if names := p.missing(); len(names) > 0 {
			all = append(all, strings.Join(names, ", ")+" of "+v1alpha2.Label(p.resource))
		}
	}

	if len(all) == 0 {
		return nil
	}

	return fmt.Errorf("nothing was changed, because required variables have no value: %s; %s", strings.Join(all, "; "),
		advice)
}

// sourceFlags returns the flags of a command that `capstan providers` has as well.
func sourceFlags(flags *cli.PlannerFlags) string {
	return flags.Repeated("operator-namespace", "image-registry")
}
