package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/predecessor"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// undo gives providers back, and what they have adopted stays. Their resources are cluster-api-operator's again, or
// else deleted. Nothing is changed if one of them was upgraded since.
func (o *options) undo(ctx context.Context, args []string) error {
	cluster, err := o.cluster.Connect()
	if err != nil {
		return err
	}

	providers, err := o.toGiveBack(ctx, cluster, args)
	if err != nil {
		return err
	}

	versions := map[v1alpha2.Provider]string{}

	for _, p := range providers {
		if !p.GetDeletionTimestamp().IsZero() && v1alpha2.Asks(p, v1alpha2.KeepInstalledAnnotation) {
			versions[p] = ptr.Deref(p.GetStatus().InstalledVersion, "") // an earlier run has begun to give it back
			continue
		}

		history, err := cluster.Releases.Observe(ctx, plan.ReleaseKey(p))
		if err != nil {
			return err
		}

		if versions[p], err = adopted(history); err != nil {
			return fmt.Errorf("nothing was changed, because %s cannot be given back: %w", v1alpha2.Label(p), err)
		}
	}

	slices.Reverse(providers) // core last

	for _, p := range providers {
		if o.dryRun {
			o.Printf("%s would be given back", v1alpha2.FullName(p))
			continue
		}

		if predecessor.WasTakenOver(p) {
			err = o.giveResourceBack(ctx, cluster, p)
		} else {
			err = o.giveBack(ctx, cluster, p, versions[p])
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// toGiveBack returns the providers that the arguments name. It leaves out those that were given back already, by an
// earlier run that was interrupted: clusterctl's inventory has them, and Capstan has no resource of them.
func (o *options) toGiveBack(ctx context.Context, cluster *cli.Cluster, args []string) ([]v1alpha2.Provider, error) {
	remaining := make([]string, 0, len(args))

	for _, argument := range args {
		_, missing := cluster.FindAll(ctx, []string{argument})
		if missing == nil {
			remaining = append(remaining, argument)
			continue
		}

		installed, err := clusterctl{}.Find(ctx, cluster)
		if err != nil {
			return nil, err
		}

		given, err := choose(installed.Installations, []string{argument})
		if err != nil {
			return nil, missing
		}

		o.Printf("%s: was given back already; clusterctl's inventory has it", v1alpha2.FullName(given[0].Provider))
	}

	return cluster.FindAll(ctx, remaining)
}

// adopted returns the version that a release has adopted. It is an error if the release has not adopted anything, or
// has held another version or chart since.
func adopted(history state.History) (string, error) {
	if _, exists := history.Newest(); !exists {
		return "", errors.New("it has no release; delete its resource, which removes nothing that it has not installed")
	}

	first := history.Revisions[len(history.Revisions)-1]
	if first.Adopted == 0 {
		return "", fmt.Errorf("revision %d, the oldest one in the history of release %s, has adopted nothing; delete the "+
			"resource with the annotation %s: \"true\" to keep what is installed", first.Number, history.Release,
			v1alpha2.KeepInstalledAnnotation)
	}

	if before := first.AdoptedVersion; before != "" && before != first.Version {
		return "", fmt.Errorf("revision %d of release %s has adopted %s and upgraded it to %s in one step; delete the "+
			"resource with the annotation %s: \"true\" to keep what is installed", first.Number, history.Release, before,
			first.Version, v1alpha2.KeepInstalledAnnotation)
	}

	for _, r := range slices.Backward(history.Revisions) {
		if r.Version != first.Version || r.ChartDigest != first.ChartDigest {
			return "", fmt.Errorf("revision %d of release %s has upgraded it from %s to %s since; delete the resource with "+
				"the annotation %s: \"true\" to keep what is installed", r.Number, history.Release, first.Version, r.Version,
				v1alpha2.KeepInstalledAnnotation)
		}
	}

	return first.Version, nil
}

// giveResourceBack gives a resource, with its provider, back to cluster-api-operator.
func (o *options) giveResourceBack(ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider) error {
	annotations := map[string]any{v1alpha2.GiveBackAnnotation: "true"}
	if err := cluster.Patch(ctx, p, map[string]any{"metadata": map[string]any{"annotations": annotations}}); err != nil {
		return err
	}

	if err := cluster.Wait(ctx, o.Options, p, o.wait.Timeout, givenBack); err != nil {
		return err
	}

	o.Printf("%s: given back to cluster-api-operator; start that again, with its webhooks, by applying its manifests or "+
		"upgrading its Helm release", v1alpha2.FullName(p))

	return nil
}

// givenBack is met when Capstan's operator has given a resource back, and written its last status.
func givenBack(p v1alpha2.Provider) (bool, error) {
	if p == nil {
		return false, errors.New("the resource was deleted")
	}

	return predecessor.IsGivenBack(p) && p.GetStatus().Release == nil, nil
}

// giveBack deletes a resource without its provider, and puts the provider into clusterctl's inventory.
func (o *options) giveBack(ctx context.Context, cluster *cli.Cluster, p v1alpha2.Provider, version string) error {
	name, label, namespace := v1alpha2.FullName(p), v1alpha2.Label(p), p.GetNamespace()

	item := newItem(p, version)

	annotations := map[string]any{v1alpha2.KeepInstalledAnnotation: "true"}
	if err := cluster.Patch(ctx, p, map[string]any{"metadata": map[string]any{"annotations": annotations}}); err != nil {
		return err
	}

	if err := awaitHandover(ctx, cluster, item); err != nil {
		return err
	}

	if err := cluster.Client.Delete(ctx, p); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}

	if err := cluster.Wait(ctx, o.Options, p, o.wait.Timeout, cli.Gone); err != nil {
		return fmt.Errorf("%w; run the command again to see whether %s is given back", err, label)
	}

	if err := restoreItem(ctx, cluster, item); err != nil {
		return fmt.Errorf("%s is given back, but not in clusterctl's inventory: %w", label, err)
	}

	o.Printf("%s: given back; everything in namespace %s stays, Secrets with variables too", name, namespace)

	return nil
}
