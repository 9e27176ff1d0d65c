package providers

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/controllers/removal"
	"github.com/capstan-project/capstan/controllers/usage"
)

// deleteChecker finds out in advance what the operator would remove, with the permissions of the user. The operator
// checks again, also what it is not known here.
type deleteChecker struct {
	*deleteOptions

	cluster *cli.Cluster
	usage   *usage.Finder

	// selected are the providers to remove, and all those of the cluster.
	selected, all []v1alpha2.Provider
}

// check finds out what would be removed with a provider, and what prevents it.
func (c *deleteChecker) check(ctx context.Context, p v1alpha2.Provider) (*effect, error) {
	e := &effect{provider: p}

	switch {
	case p.GetSpec().Suspend:
		e.block("it is suspended; run `capstan resume %s` first", v1alpha2.Label(p))
		return e, nil
	case v1alpha2.Asks(p, v1alpha2.KeepInstalledAnnotation):
		e.add("everything that is installed stays, because of the annotation %s", v1alpha2.KeepInstalledAnnotation)
		return e, nil
	case p.GetSpec().KubeConfig != nil:
		e.add("its release in another cluster, where only the operator checks what is in use")
		return e, nil
	}

	for _, step := range []func(context.Context, *effect) error{c.checkRelease, c.checkCRDs} {
		err := step(ctx, e)
		if apierrors.IsForbidden(err) || errors.As(err, new(*storage.CorruptError)) {
			c.Warnf("not everything could be checked of %s, the operator does it: %s", v1alpha2.FullName(p), err)
			continue
		}

		if err != nil {
			return nil, err
		}
	}

	if c.includeNamespace {
		e.add("namespace %s, unless it contains other things", p.GetNamespace())
	}

	return e, nil
}

// checkRelease finds the provider's release, and whether it is in use.
func (c *deleteChecker) checkRelease(ctx context.Context, e *effect) error {
	record, history, err := c.cluster.Installed(ctx, e.provider)
	if err != nil {
		return err
	}

	if _, exists := history.Newest(); !exists {
		e.add("only the resource: nothing is installed")
		return nil
	}

	e.add("release %s with %s", history.Release.Name, object.Count(len(record.Objects), "object"))

	if others := c.needCore(e.provider); len(others) > 0 {
		e.block("core is removed last; select as well: %s", strings.Join(others, ", "))
	}

	found, err := c.usage.Find(ctx, usage.Query{
		Provider: v1alpha2.Label(e.provider), CRDs: e.provider.GetSpec().CRDs, Types: usage.ManagedTypes(e.provider),
		Ignored: record.Keys(),
	})
	if err != nil {
		return err
	}

	switch {
	case !slices.ContainsFunc(found, func(k usage.Kind) bool { return k.Count > 0 }):
		// Whether there are objects of kinds that the user may not list is for the operator to decide.
	case !c.force:
		e.block("%s; delete them first, or use --force to leave them behind unmanaged", found.Message())
	case c.includeCRDs:
		e.block("%s; CRDs are not deleted then, so delete the objects first, or keep the CRDs", found.Message())
	default:
		e.add("left behind unmanaged: %s", found.Message())
	}

	return nil
}

// needCore returns the labels of the installed providers that are not selected, if the provider is core.
func (c *deleteChecker) needCore(core v1alpha2.Provider) []string {
	if core.ProviderType() != v1alpha2.CoreProviderType {
		return nil
	}

	var others []string

	for _, p := range c.all {
		selected := slices.ContainsFunc(c.selected, func(s v1alpha2.Provider) bool { return s.GetUID() == p.GetUID() })
		if p.GetStatus().Release != nil && v1alpha2.Cluster(p) == v1alpha2.Cluster(core) && !selected {
			others = append(others, v1alpha2.Label(p))
		}
	}

	return others
}

// checkCRDs finds the CRDs that are deleted with the provider.
func (c *deleteChecker) checkCRDs(ctx context.Context, e *effect) error {
	if !c.includeCRDs || e.provider.GetStatus().Release == nil {
		return nil
	}

	ofProvider := client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(e.provider)}

	found, err := c.cluster.ListCRDs(ctx, ofProvider)
	deleted := slices.DeleteFunc(found, func(d metav1.PartialObjectMetadata) bool {
		return !removal.DeletesCRD(e.provider, &d)
	})

	if len(deleted) > 0 {
		e.add("%s", object.Count(len(deleted), "CRD"))
	}

	return err
}
