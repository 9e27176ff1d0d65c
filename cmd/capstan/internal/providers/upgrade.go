package providers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/object"
)

// NewUpgradeCommand returns `capstan upgrade`.
func NewUpgradeCommand(options *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Plan and apply upgrades of providers",
		Example: `  capstan upgrade plan
  capstan upgrade apply --contract v1beta2`,
	}
	cmd.AddCommand(newUpgradePlanCommand(options), newUpgradeApplyCommand(options))

	return cmd
}

// readAvailable returns the installed providers with the versions that their sources have. One whose source
// cannot be read has none, which causes a warning. Only the sources of those that are named are read; without names, of
// all.
func readAvailable(
	ctx context.Context, o *cli.Options, cluster *cli.Cluster, planner *cli.Planner, names []string,
) ([]*installedProvider, error) {
	found, err := cluster.Providers(ctx)
	if err != nil {
		return nil, err
	}

	selected := slices.Clone(found)

	if len(names) > 0 {
		if selected, err = cli.Named(selected, names); err != nil {
			return nil, err
		}
	}

	var (
		installed []*installedProvider
		group     errgroup.Group
	)

	group.SetLimit(parallelSources)

	for _, p := range found {
		status := p.GetStatus()
		if status.InstalledVersion == nil || status.Contract == nil {
			o.Warnf("%s is left out: %s", v1alpha2.FullName(p), view.VerdictOf(p))
			continue
		}

		provider := &installedProvider{
			resource: p,
			Resource: v1alpha2.FullName(p),
			Cluster:  cli.ClusterOf(p),
			Label:    v1alpha2.Label(p),
			Version:  *status.InstalledVersion,
			Contract: *status.Contract,
		}

		if kubeConfig := p.GetSpec().KubeConfig; kubeConfig != nil {
			provider.KubeConfig = p.GetNamespace() + "/" + kubeConfig.SecretRef.Name
		}

		installed = append(installed, provider)

		if slices.Contains(selected, p) {
			group.Go(func() error {
				provider.Available, provider.unread = planner.Versions(ctx, p)
				return ctx.Err()
			})
		}
	}

	progress := cli.NewProgress(o.ErrOut)
	slow := time.AfterFunc(time.Second, func() {
		progress.Show("Asking the sources of the providers for their versions")
	})
	err = group.Wait()

	slow.Stop()
	progress.Show()
	warnOfUnread(o, installed)

	return installed, err
}

// parallelSources is the number of sources that are asked at the same time.
const parallelSources = 8

// warnOfUnread warns of the sources that could not be read: once for each cause, such as a server that cannot be
// reached.
func warnOfUnread(o *cli.Options, installed []*installedProvider) {
	var causes []string

	labels := map[string][]string{}

	for _, p := range installed {
		if p.unread == nil {
			continue
		}

		cause := p.unread.Error()

		var shared interface{ Message() string }
		if errors.As(p.unread, &shared) {
			cause = shared.Message()
		}

		if labels[cause] == nil {
			causes = append(causes, cause)
		}

		labels[cause] = append(labels[cause], p.Label)
	}

	for _, cause := range causes {
		o.Warnf("the available versions of %s are unknown: %s; or give --config a file with other sources",
			object.List(slices.Compact(labels[cause]), cli.MaxNamed), cause)
	}
}

// unknown returns the labels of the providers of which it is not known which versions there are.
func unknown(installed []*installedProvider) []string {
	var labels []string

	for _, p := range installed {
		if p.unread != nil {
			labels = append(labels, p.Label)
		}
	}

	return slices.Compact(labels) // the same provider in several clusters
}

// await waits until the selected providers are ready, and prints how many are, which are not, and which others have
// their newest version.
func (o *upgradeApplyOptions) await(
	ctx context.Context, cluster *cli.Cluster, selected []v1alpha2.Provider, newest []string,
) error {
	start, failed := time.Now(), map[string]string{}
	for _, p := range selected {
		failed[v1alpha2.FullName(p)] = v1alpha2.Label(p)
	}

	err := cluster.WaitAll(ctx, o.Options, selected, o.wait, func(p v1alpha2.Provider) (bool, error) {
		done, err := cli.Ready(p)
		if done {
			delete(failed, v1alpha2.FullName(p))
		}

		return done, err
	})

	summary := fmt.Sprintf("%d of %s ready after %s", len(selected)-len(failed), object.Count(len(selected), "provider"),
		time.Since(start).Round(100*time.Millisecond))

	if len(failed) > 0 {
		summary += "; not ready: " + object.List(slices.Sorted(maps.Values(failed)), cli.MaxNamed)
	}

	if len(newest) > 0 {
		summary += "; no newer version of " + object.List(newest, cli.MaxNamed)
	}

	o.Printf("%s", summary)

	return err
}
