// Command demo demonstrates Capstan: it starts a control plane, runs the operator, installs five
// Cluster API providers and shows them with the real kubectl and helm, and with capstan. `make demo` runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

const defaultTimeout = 5 * time.Minute

// upgradable is the provider that is not installed in its newest version, if there is another one, so that its upgrade
// can be tried.
const upgradable = "infrastructure-docker"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)

	stop()

	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run must be started in the module's root, with the programs in bin/.
func run(ctx context.Context) (err error) {
	timeout := defaultTimeout
	if set := os.Getenv("DEMO_TIMEOUT"); set != "" {
		if timeout, err = time.ParseDuration(set); err != nil {
			return fmt.Errorf("DEMO_TIMEOUT is not a duration such as 5m: %w", err)
		}
	}

	programs, err := tools.Find()
	if err != nil {
		return err
	}

	programs = programs.OfBed().WithReleases()
	if err := programs.Build(ctx, os.Stdout); err != nil {
		return err
	}

	dir, err := os.MkdirTemp("", "capstan-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	starting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	say("Starting a control plane with simulated nodes")

	b, err := bed.Start(starting, bed.Options{Programs: programs})
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, b.Stop()) }()

	c, err := harness.Prepare(starting, b.Config())
	if err != nil {
		return err
	}

	say("Starting the operator, which logs to %s", filepath.Join(dir, "operator.log"))

	operator, err := harness.StartOperator(b, "bin/operator", filepath.Join(dir, "operator.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, operator.Stop()) }()

	folder := repository(starting, dir)

	newest, err := harness.Load(starting, folder, harness.Wanted{Label: upgradable})
	if err != nil {
		return err
	}

	providers, err := install(starting, c, folder, newest)
	if err != nil {
		return err
	}

	if err := watch(starting, c, operator, providers); err != nil {
		return err
	}

	if err := show(ctx, b); err != nil {
		return err
	}

	if os.Getenv("DEMO_EXIT") == "1" {
		return nil
	}

	explain(b, providers, newest)
	<-ctx.Done()

	return nil
}

// repository returns a folder with releases: from PROVIDERS, from GitHub, or the samples.
func repository(ctx context.Context, dir string) string {
	if folder := os.Getenv(testproviders.Variable); folder != "" {
		say("Providers: using the releases in %s", folder)
		return folder
	}

	say("Providers: downloading real releases from GitHub")

	if err := harness.Download(ctx, harness.GitHub, dir); err == nil {
		return dir
	}

	say(
		"Providers: GitHub is not reachable, using the small samples in %s; for real releases, set PROVIDERS to "+
			"a folder in the layout of a clusterctl local repository",
		testproviders.Samples,
	)

	return testproviders.Samples
}

// install creates five resources at once. The operator installs them in the right order. The newest version of the
// upgradable provider is only made available.
func install(
	ctx context.Context,
	c client.Client,
	folder string,
	newest *harness.Release,
) ([]v1alpha2.Provider, error) {
	if err := newest.Prepare(ctx, c); err != nil {
		return nil, err
	}

	var providers []v1alpha2.Provider

	for _, wanted := range harness.Standard {
		if wanted.Label == upgradable {
			wanted.Version = "<" + newest.Bundle.Version
		}

		release, err := harness.Load(ctx, folder, wanted)
		if err != nil {
			return nil, err
		}

		say(
			"Creating %s %s, version %s, in namespace %s",
			release.Type,
			release.Bundle.Provider.Name,
			release.Bundle.Version,
			release.Namespace,
		)

		p, err := release.Install(ctx, c)
		if err != nil {
			return nil, err
		}

		providers = append(providers, p)
	}

	return providers, nil
}

// watch prints each change of the resources until all are ready.
func watch(ctx context.Context, c client.Client, operator *harness.Operator, providers []v1alpha2.Provider) error {
	begin := time.Now()
	printed := map[string]string{}

	for {
		ready := 0

		for _, p := range providers {
			if err := c.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
				return fmt.Errorf("not all providers are ready: %w", err)
			}

			if conditions.IsReady(p) {
				ready++
			}

			label, message := v1alpha2.Label(p), conditions.GetMessage(p, v1alpha2.ReadyCondition)
			if message != "" && printed[label] != message {
				printed[label] = message
				fmt.Printf("  %5.1fs  %-24s %s\n", time.Since(begin).Seconds(), label, message)
			}
		}

		if ready == len(providers) {
			say("All %d providers are ready after %.1f s", ready, time.Since(begin).Seconds())
			return nil
		}

		if ended, err := operator.Exited(); ended {
			return fmt.Errorf("the operator has ended: %w", err)
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"%d of %d providers were not ready in time: %w",
				len(providers)-ready,
				len(providers),
				context.DeadlineExceeded,
			)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// show runs kubectl, helm and capstan.
func show(ctx context.Context, b *bed.Bed) error {
	for _, command := range [][]string{
		{"kubectl", "get", "capstan", "-A"},
		{"helm", "list", "-A"},
		{"capstan", "status"},
	} {
		fmt.Printf("\n$ %s\n", strings.Join(command, " "))
		cmd := b.Command(ctx, command[0], command[1:]...)

		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
		}
	}

	return nil
}

// explain prints the commands to use while the demo keeps running.
func explain(b *bed.Bed, providers []v1alpha2.Provider, newest *harness.Release) {
	core := providers[0]
	fmt.Printf(`
The demo keeps running until Ctrl-C, so that you can explore. In another terminal:

  export KUBECONFIG=%s PATH=%s:$PATH
  capstan ui                 # all providers in the browser
  capstan status cluster-api
  helm get manifest %s -n %s
  kubectl get capstan -A -w  # then edit, delete or break something
`, b.Kubeconfig(), filepath.Dir(b.Binary("helm")), v1alpha2.Label(core), core.GetNamespace())

	for _, p := range providers {
		if v1alpha2.Label(p) == upgradable && p.GetSpec().Version != newest.Bundle.Version {
			fmt.Printf(`
To upgrade a provider, and to go back:

  capstan upgrade apply %s:%s
  capstan rollback %[1]s 1
`, upgradable, newest.Bundle.Version)
		}
	}
}

func say(format string, args ...any) { fmt.Printf("• "+format+"\n", args...) }
