package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
)

// management is the management cluster that a command works on.
type management struct {
	flags *genericclioptions.ConfigFlags

	config   *rest.Config
	client   client.Client
	releases *release.Engine
}

// managementFlags gives a command kubectl's own flags for finding a cluster.
func managementFlags(flags *pflag.FlagSet) *management {
	m := &management{flags: genericclioptions.NewConfigFlags(true)}
	m.flags.CacheDir = nil // nothing is kept on disk
	m.flags.AddFlags(flags)
	flags.Lookup("namespace").Usage = "Only look at providers in this namespace; by default at those in all, whatever the kubeconfig says"

	return m
}

// connect finds the cluster. No request is made.
func (m *management) connect() error {
	config, err := m.flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("find the management cluster: %w; name its --kubeconfig or --context", err)
	}

	if config.Timeout == 0 {
		config.Timeout = requestTimeout
	}

	config.QPS = -1 // the API server throttles by itself, and more fairly

	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha2.AddToScheme(scheme)); err != nil {
		return err
	}

	m.config = config
	if m.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("reach the management cluster: %w", err)
	}

	host, _ := os.Hostname() // it names who holds a release, and this program never does
	m.releases, err = release.NewEngine(config, release.Options{Holder: "capstan@" + host})

	return err
}

// namespace is the one that --namespace names; empty means all.
func (m *management) namespace() string { return *m.flags.Namespace }

// providers lists the providers' resources, core first, in clusterctl's order of installation.
func (m *management) providers(ctx context.Context) ([]v1alpha2.Provider, error) {
	return m.providersIn(ctx, m.namespace())
}

// providersIn lists the resources of a namespace; an empty one means all.
func (m *management) providersIn(ctx context.Context, namespace string) ([]v1alpha2.Provider, error) {
	var all []v1alpha2.Provider

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()

		err := m.client.List(ctx, list, client.InNamespace(namespace))
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf(
				"the management cluster knows no %s resources; install Capstan there, or name another cluster with --kubeconfig or --context",
				t,
			)
		}

		if err != nil {
			return nil, fmt.Errorf("list %s resources: %w", t, err)
		}

		all = append(all, list.GetItems()...)
	}

	return all, nil
}

// Waiting for the operator looks at the resource this often: it costs little, and people notice
// more.
const pollInterval = 300 * time.Millisecond

// wait reads the resource again and again until done says so, and tells each new state in a line.
// done gets nil once the resource is gone. The error says how long was waited for what.
func (m *management) wait(
	ctx context.Context,
	provider v1alpha2.Provider,
	timeout time.Duration,
	tell func(string),
	done func(v1alpha2.Provider) (bool, error),
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("given up after %s", timeout))
	defer cancel()

	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()

	for told := ""; ; {
		err := m.client.Get(ctx, client.ObjectKeyFromObject(provider), provider)
		now := provider

		switch {
		case apierrors.IsNotFound(err):
			now = nil
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("read %s: %w", nameOf(provider), err)
		}

		if ended, err := done(now); ended || err != nil {
			return err
		}

		if state := readiness(provider); state != told {
			tell(fmt.Sprintf("%s: %s", nameOf(provider), state))
			told = state
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %s; the operator goes on, `capstan status %s` tells how far it is",
				nameOf(provider), context.Cause(ctx), told, v1alpha2.Label(provider))
		case <-ticker.C:
		}
	}
}
