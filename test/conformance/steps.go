package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const pollInterval = 250 * time.Millisecond

// poll waits until a condition is met, at most for the time of a step. It reports whether it was met in time.
func (c *check) poll(ctx context.Context, met func(context.Context) (bool, error)) (bool, error) {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, c.timeout, true, met)
	if wait.Interrupted(err) && ctx.Err() == nil {
		return false, nil
	}

	return err == nil, err
}

// waitReady waits until a version is installed. It returns why it is not if that takes too long, or if the
// operator has given up.
func (c *check) waitReady(ctx context.Context, p v1alpha2.Provider, version string) (problem string, err error) {
	ready := false

	_, err = c.poll(ctx, func(ctx context.Context) (bool, error) {
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return false, err
		}

		current := p.GetStatus().ObservedGeneration == p.GetGeneration()
		installed := p.GetStatus().InstalledVersion
		ready = current && installed != nil && *installed == version && conditions.IsTrue(p, v1alpha2.ReadyCondition)

		return ready || current && conditions.IsTrue(p, v1alpha2.StalledCondition), nil
	})
	if ready || err != nil {
		return "", err
	}

	if condition := conditions.Get(p, v1alpha2.ReadyCondition); condition != nil {
		return condition.Reason + ": " + condition.Message, nil
	}

	return "the operator reports no condition", nil
}

// install creates the resource of a release, so that the operator gives up within the time of a step.
func (c *check) install(ctx context.Context, release *release) (v1alpha2.Provider, error) {
	if err := release.Prepare(ctx, c.client); err != nil {
		return nil, err
	}

	p := release.Resource()
	p.GetSpec().Release = &v1alpha2.ReleaseSpec{
		Timeout: &metav1.Duration{Duration: c.timeout / 2},
		Retries: new(int32(0)),
	}

	return p, c.client.Create(ctx, p)
}

// upgrade upgrades to the release that is checked. It returns why that failed.
func (c *check) upgrade(ctx context.Context, p v1alpha2.Provider) (problem string, err error) {
	if err := c.release.Prepare(ctx, c.client); err != nil {
		return "", err
	}

	base := p.DeepCopyObject().(client.Object)
	p.GetSpec().Version = c.release.Bundle.Version

	if err := c.client.Patch(ctx, p, client.MergeFrom(base)); err != nil {
		return "", err
	}

	return c.waitReady(ctx, p, c.release.Bundle.Version)
}

// remove deletes the provider with its CRDs and its namespace, and reports what remains.
func (c *check) remove(ctx context.Context, p v1alpha2.Provider) error {
	base := p.DeepCopyObject().(client.Object)
	p.SetAnnotations(map[string]string{
		v1alpha2.DeleteCRDsAnnotation: "true", v1alpha2.DeleteNamespaceAnnotation: "true",
	})

	if err := c.client.Patch(ctx, p, client.MergeFrom(base)); err != nil {
		return err
	}

	if err := c.client.Delete(ctx, p); err != nil {
		return err
	}

	gone, err := c.poll(ctx, func(ctx context.Context) (bool, error) {
		err := c.client.Get(ctx, client.ObjectKeyFromObject(p), p)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}

	if !gone {
		c.report(removeRule, "is not removed: %s", conditions.GetMessage(p, v1alpha2.ReadyCondition))
		return nil
	}

	var remaining []string

	gone, err = c.poll(ctx, func(ctx context.Context) (bool, error) {
		found, err := c.labeled(ctx, v1alpha2.Label(p))
		if err != nil {
			return false, err
		}

		if remaining = found; len(remaining) > 0 {
			return false, nil
		}

		remaining = []string{"namespaces " + p.GetNamespace()}
		err = c.client.Get(ctx, client.ObjectKey{Name: p.GetNamespace()}, &corev1.Namespace{})

		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err == nil && !gone {
		c.report(removeRule, "is removed, but some of its objects remain: %s", strings.Join(remaining, ", "))
	}

	return err
}

// labeled returns the objects with the label of a provider, as "resource namespace/name".
func (c *check) labeled(ctx context.Context, provider string) ([]string, error) {
	resources, err := c.resources()
	if err != nil {
		return nil, err
	}

	config := c.bed.Config()
	config.WarningHandler = rest.NoWarnings{} // deprecated resources are listed, too

	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	var found []string

	for _, resource := range resources {
		list, err := objects.Resource(resource).List(ctx, metav1.ListOptions{
			LabelSelector: v1alpha2.ClusterctlProviderLabel + "=" + provider,
		})
		if apierrors.IsNotFound(err) {
			continue // the CRD is being deleted
		}

		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
		}

		for _, o := range list.Items {
			found = append(found, resource.Resource+" "+strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
		}
	}

	return found, nil
}

// resources returns all resources that can be listed.
func (c *check) resources() ([]schema.GroupVersionResource, error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.bed.Config())
	if err != nil {
		return nil, err
	}

	lists, err := d.ServerPreferredResources()
	if err != nil {
		return nil, err
	}

	var resources []schema.GroupVersionResource

	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}

		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") {
				resources = append(resources, gv.WithResource(resource.Name))
			}
		}
	}

	return resources, nil
}
