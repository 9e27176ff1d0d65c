package setup

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// chartRelease is a Helm release to install.
type chartRelease struct {
	name, namespace string
	chart           *helmchart.Chart
	values          map[string]any
}

func (r *chartRelease) String() string {
	return fmt.Sprintf("release %s/%s of chart %s %s", r.namespace, r.name, r.chart.Name(), r.chart.Metadata.Version)
}

// configuration returns Helm's access to the cluster.
func (r *chartRelease) configuration(getter genericclioptions.RESTClientGetter) (*action.Configuration, error) {
	c := new(action.Configuration)

	return c, c.Init(getter, r.namespace, "secret", func(string, ...any) {})
}

// last returns the newest revision in the cluster; nil if there is none.
func (r *chartRelease) last(getter genericclioptions.RESTClientGetter) (*helmrelease.Release, error) {
	c, err := r.configuration(getter)
	if err != nil {
		return nil, err
	}

	last, err := c.Releases.Last(r.name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("read release %s/%s: %w", r.namespace, r.name, err)
	}

	if last.Info.Status.IsPending() {
		return nil, fmt.Errorf("release %s/%s is %s: another program is working on it, or was interrupted; wait for it, or "+
			"run `helm uninstall %s -n %[2]s` or `helm rollback %[2]s -n %[1]s` first",
			r.namespace, r.name, last.Info.Status, r.name)
	}

	return last, nil
}

// apply installs the release, or upgrades one whose installation has failed, and waits until it is ready. Helm does not
// look at ctx until it has recorded a revision. If ctx ends before that, apply returns at once, and nothing is recorded
// any more.
func (r *chartRelease) apply(
	ctx context.Context, getter genericclioptions.RESTClientGetter, timeout time.Duration,
) error {
	recorded, result := new(atomic.Bool), make(chan error, 1)

	go func() { result <- r.install(ctx, getter, timeout, recorded) }()

	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}

	if recorded.CompareAndSwap(false, true) {
		return ctx.Err()
	}

	return <-result
}

// records are where Helm records revisions, unless the program has not waited for the first.
type records struct {
	driver.Driver

	recorded *atomic.Bool
}

// Create records a revision. Helm creates one for each installation and upgrade.
func (r *records) Create(key string, revision *helmrelease.Release) error {
	if !r.recorded.CompareAndSwap(false, true) {
		return context.Canceled
	}

	return r.Driver.Create(key, revision)
}

// install is apply without an end before Helm has recorded a revision.
func (r *chartRelease) install(
	ctx context.Context, getter genericclioptions.RESTClientGetter, timeout time.Duration, recorded *atomic.Bool,
) error {
	last, err := r.last(getter)
	if err != nil {
		return err
	}

	c, err := r.configuration(getter)
	if err != nil {
		return err
	}

	c.Releases.Driver = &records{c.Releases.Driver, recorded}

	if last == nil {
		install := action.NewInstall(c)
		install.ReleaseName, install.Namespace = r.name, r.namespace
		install.CreateNamespace = true
		install.Wait, install.Timeout = true, timeout

		_, err = install.RunWithContext(ctx, r.chart, r.values)
	} else {
		upgrade := action.NewUpgrade(c)
		upgrade.Namespace = r.namespace
		upgrade.Wait, upgrade.Timeout = true, timeout

		_, err = upgrade.RunWithContext(ctx, r.name, r.chart, r.values)
	}

	if err != nil {
		return fmt.Errorf("install %s: %w; `helm status %s -n %s` and `kubectl get pods -n %[4]s` show more; run the same "+
			"command again to retry", r, err, r.name, r.namespace)
	}

	return nil
}
