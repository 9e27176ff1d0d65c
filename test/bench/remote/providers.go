package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bench/measure"
	"github.com/capstan-project/capstan/test/harness"
)

const (
	localProviders = 20
	perServer      = 20 // remote clusters on each server
	rounds         = 3  // in each measurement

	installed, upgraded = "v1.0.0", "v1.1.0"

	pollInterval = 20 * time.Millisecond
)

// measurer installs and removes providers.
type measurer struct {
	client  client.Client
	servers *servers
	// local are the providers to measure, in their first version.
	local []*harness.Release
	// remote are the resources of providers in remote clusters: core, and one for infrastructure in each.
	remote []v1alpha2.Provider
}

// prepare creates namespaces, sources and kubeconfigs, and installs the local core provider, which the
// others need.
func (m *measurer) prepare(ctx context.Context) error {
	core := harness.Small(v1alpha2.CoreProviderType, key("near-core", v1alpha2.CoreProviderName), "nearcore", installed)
	if _, err := core.Install(ctx, m.client); err != nil {
		return err
	}

	for i := range localProviders {
		for _, version := range []string{upgraded, installed} {
			name := fmt.Sprintf("near-%02d", i)

			r := harness.Small(v1alpha2.InfrastructureProviderType, key(name, name), fmt.Sprintf("near%02d", i), version)
			if err := r.Prepare(ctx, m.client); err != nil {
				return err
			}

			if version == installed {
				m.local = append(m.local, r)
			}
		}
	}

	for _, s := range m.servers.all {
		for i, address := range s.addresses {
			if err := m.prepareRemote(ctx, fmt.Sprintf("%s-%02d", s.name, i), address); err != nil {
				return err
			}
		}
	}

	return m.ready(ctx, core.Resource(), installed)
}

// prepareRemote creates what the providers of a remote cluster need, in their namespace.
func (m *measurer) prepareRemote(ctx context.Context, namespace, address string) error {
	object := "far" + namespace[:2] + namespace[len(namespace)-2:]

	for _, r := range []*harness.Release{
		harness.Small(v1alpha2.CoreProviderType, key(namespace, v1alpha2.CoreProviderName), object+"core", installed),
		harness.Small(v1alpha2.InfrastructureProviderType, key(namespace, namespace), object, installed),
	} {
		if err := r.Prepare(ctx, m.client); err != nil {
			return err
		}

		m.remote = append(m.remote, measure.Remote(r))
	}

	return m.client.Create(ctx, measure.Kubeconfig(namespace, address, m.servers.authority))
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// measure returns the averages of several rounds.
func (m *measurer) measure(ctx context.Context) (times, error) {
	var sum times

	for range rounds {
		t, err := m.round(ctx)
		if err != nil {
			return times{}, err
		}

		sum.install += t.install
		sum.upgrade += t.upgrade
	}

	return times{install: sum.install / rounds, upgrade: sum.upgrade / rounds}, nil
}

// round installs, upgrades and removes the local providers.
func (m *measurer) round(ctx context.Context) (times, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()

	begin := time.Now()

	for _, r := range m.local {
		if err := m.client.Create(ctx, r.Resource()); err != nil {
			return times{}, err
		}
	}

	if err := m.allReady(ctx, installed); err != nil {
		return times{}, err
	}

	took := times{install: time.Since(begin)}
	begin = time.Now()

	for _, r := range m.local {
		p := r.Resource()
		change := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"version": %q}}`, upgraded))

		if err := m.client.Patch(ctx, p, change); err != nil {
			return times{}, err
		}
	}

	if err := m.allReady(ctx, upgraded); err != nil {
		return times{}, err
	}

	took.upgrade = time.Since(begin)

	return took, m.removeLocal(ctx)
}

// measureWithRemote measures while the operator tries to reach remote clusters: it begins when all were
// tried for the first time.
func (m *measurer) measureWithRemote(ctx context.Context) (times, error) {
	before := m.servers.counts()

	for _, p := range m.remote {
		if err := m.client.Create(ctx, p.DeepCopyObject().(client.Object)); err != nil {
			return times{}, err
		}
	}

	if err := m.servers.allTried(ctx, before); err != nil {
		return times{}, err
	}

	first := m.servers.since(before)

	took, err := m.measure(ctx)
	if err != nil {
		return times{}, err
	}

	fmt.Printf("attempts to reach remote clusters before the measurement: %s; until its end: %s\n",
		first, m.servers.since(before))

	return took, m.removeRemote(ctx)
}

func (m *measurer) allReady(ctx context.Context, version string) error {
	for _, r := range m.local {
		if err := m.ready(ctx, r.Resource(), version); err != nil {
			return err
		}
	}

	return nil
}

// ready polls until a provider is Ready in a version.
func (m *measurer) ready(ctx context.Context, p v1alpha2.Provider, version string) error {
	for {
		if err := m.client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return fmt.Errorf("%s is not ready (%s): %w", v1alpha2.Label(p),
				conditions.GetMessage(p, v1alpha2.ReadyCondition), err)
		}

		if measure.Runs(p, version) {
			return nil
		}

		measure.Pause(ctx, pollInterval)
	}
}

func (m *measurer) removeLocal(ctx context.Context) error {
	for _, r := range m.local {
		if err := m.client.Delete(ctx, r.Resource()); err != nil {
			return err
		}
	}

	for _, r := range m.local {
		if err := m.gone(ctx, r.Resource()); err != nil {
			return err
		}
	}

	return nil
}

// removeRemote deletes the providers of remote clusters, without removing what they may have installed.
func (m *measurer) removeRemote(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	withoutFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))

	for _, p := range m.remote {
		p := p.DeepCopyObject().(client.Object)
		if err := m.client.Delete(ctx, p); err != nil {
			return err
		}

		if err := m.client.Patch(ctx, p, withoutFinalizers); client.IgnoreNotFound(err) != nil {
			return err
		}
	}

	for _, p := range m.remote {
		if err := m.gone(ctx, p.DeepCopyObject().(client.Object)); err != nil {
			return err
		}
	}

	return nil
}

// gone polls until an object does not exist.
func (m *measurer) gone(ctx context.Context, o client.Object) error {
	for {
		err := m.client.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil
		}

		if err != nil {
			return fmt.Errorf("%s is not gone: %w", o.GetName(), err)
		}

		measure.Pause(ctx, pollInterval)
	}
}
