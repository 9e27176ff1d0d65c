package conformance

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/test/bed"
)

// DefaultIdle is how long a manager is observed, unless the options set another time.
const DefaultIdle = 30 * time.Second

// Manager is the provider's manager, which runs as a process against the bed. The API server does not call the
// provider's admission webhooks meanwhile.
type Manager struct {
	// Command is the program with its arguments. Its variable KUBECONFIG is the path of a kubeconfig file with the
	// permissions of the ServiceAccount of the release's first Deployment, and POD_NAMESPACE is the provider's
	// namespace.
	Command []string
	// Cluster is a file with a Cluster and its objects, as `clusterctl generate cluster` prints them. Of these
	// objects, those of kinds of the provider, or of others that the environment has been started with, are created.
	Cluster string
	// Idle is how long the manager is observed, from its first change of an object of the Cluster; zero means
	// DefaultIdle.
	Idle time.Duration
}

// prepareManager reads what the check of the manager needs.
func (c *check) prepareManager() error {
	components, err := bundle.ParseComponents(c.release.Bundle.Components)
	if err != nil {
		return err
	}

	accounts := managerAccounts(components)
	if len(accounts) == 0 {
		return fmt.Errorf("%s contains no Deployment, so it has no manager to check", c.options.Release)
	}

	c.account = accounts[0]
	c.topology, err = readTopology(c.options.Manager.Cluster, append(slices.Clone(c.others), components))

	return err
}

// checkManager runs the provider's manager with two copies of what a Cluster refers to: one that the Cluster owns,
// and one without an owner.
func (c *check) checkManager(ctx context.Context, p v1alpha2.Provider) error {
	if err := c.disableWebhooks(ctx, p); err != nil {
		return err
	}

	owned, err := c.createOwned(ctx)
	if err != nil {
		return err
	}

	unowned, err := c.createUnowned(ctx)
	if err != nil {
		return err
	}

	if err := c.runManager(ctx, p.GetNamespace(), owned, unowned); err != nil {
		return err
	}

	for _, namespace := range []string{owned, unowned} {
		if err := c.deleteObjects(ctx, namespace); err != nil {
			return err
		}
	}

	return c.suspend(ctx, p, false)
}

// runManager runs the manager, and reports what it does too early. Only a manager that changes the objects of the
// Cluster, in the namespace owned, proves something by leaving those without an owner alone.
func (c *check) runManager(ctx context.Context, namespace, owned, unowned string) error {
	m, err := c.startManager(ctx, namespace, c.account)
	if err != nil {
		return err
	}
	defer m.stop()

	var writes []bed.Request

	_, err = c.poll(ctx, func(context.Context) (bool, error) {
		var err error

		writes, err = c.writes(m, owned)

		return len(writes) > 0 || m.hasExited(), err
	})
	if err != nil {
		return err
	}

	if len(writes) == 0 {
		c.report(managerRule, "has a manager that changes no object of a Cluster; its log ends with %q", m.lastLine())
		return nil
	}

	if err := c.observe(ctx, m); err != nil {
		return err
	}

	if err := c.checkWrites(m, owned, unowned); err != nil {
		return err
	}

	return c.checkStatus(ctx, unowned)
}

// observe waits until the manager has been observed long enough, and reports if it ends before.
func (c *check) observe(ctx context.Context, m *manager) error {
	idle := c.options.Manager.Idle
	if idle == 0 {
		idle = DefaultIdle
	}

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.exited:
		c.report(managerRule, "has a manager that has ended; its log ends with %q", m.lastLine())
	case <-time.After(idle):
	}

	return nil
}

// checkWrites checks what the manager has changed. It may always set finalizers and conditions of the objects.
func (c *check) checkWrites(m *manager, owned, unowned string) error {
	writes, err := c.writes(m, unowned)
	if err != nil {
		return err
	}

	if writes = slices.DeleteFunc(writes, c.topology.contains); len(writes) > 0 {
		c.report(ownerRule, "has a manager that sends %q for an object without an owner", text(writes[0]))
	}

	// Infrastructure providers may create objects, such as IPAddressClaims, to get the endpoint.
	if c.release.Type != v1alpha2.ControlPlaneProviderType {
		return nil
	}

	if writes, err = c.writes(m, owned); err != nil {
		return err
	}

	writes = slices.DeleteFunc(writes, func(r bed.Request) bool {
		return !strings.HasSuffix("."+r.Group, "."+clusterv1.GroupVersion.Group) || c.topology.contains(r)
	})
	if len(writes) > 0 {
		c.report(endpointRule, "has a manager that sends %q for a Cluster without an endpoint", text(writes[0]))
	}

	return nil
}

// checkStatus checks that the manager reports nothing without an owner as initialized.
func (c *check) checkStatus(ctx context.Context, unowned string) error {
	for _, o := range c.topology.referenced {
		o = o.DeepCopy()
		if err := c.client.Get(ctx, client.ObjectKey{Namespace: unowned, Name: o.GetName()}, o); err != nil {
			return err
		}

		if isInitialized(o) {
			c.report(ownerRule, "has a manager that initializes %s %s without an owner", o.GetKind(), o.GetName())
		}
	}

	return nil
}

// isInitialized reports whether a control plane or infrastructure is initialized, in terms of any contract.
func isInitialized(o *unstructured.Unstructured) bool {
	for _, field := range []string{
		"initialization.controlPlaneInitialized", "initialization.provisioned", // v1beta2
		"initialized", "ready", // v1beta1
	} {
		path := append([]string{"status"}, strings.Split(field, ".")...)
		if value, _, _ := unstructured.NestedBool(o.Object, path...); value {
			return true
		}
	}

	return false
}

// writes returns the requests of the manager that change objects in a namespace. Events do not count.
func (c *check) writes(m *manager, namespace string) ([]bed.Request, error) {
	return c.bed.Requests(func(r bed.Request) bool {
		return r.User == m.user && r.Namespace == namespace && r.Write() && r.Resource != "events"
	})
}

// text returns a request as "verb resource/subresource".
func text(r bed.Request) string { return r.Verb + " " + path.Join(r.Resource, r.Subresource) }
