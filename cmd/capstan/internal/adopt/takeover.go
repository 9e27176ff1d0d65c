package adopt

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// takeOver adopts the providers. It can be repeated after an error.
func (o *options) takeOver(ctx context.Context, cluster *cli.Cluster, found *Found, proposals []*proposal) error {
	if err := o.perform(ctx, found.Before); err != nil {
		return err
	}

	// Providers wait for core themselves.
	for _, p := range proposals {
		if err := o.create(ctx, cluster, p); err != nil {
			return err
		}
	}

	if !o.wait.Wait {
		return nil
	}

	for _, p := range proposals {
		if err := cluster.Wait(ctx, o.Options, p.Provider, o.wait.Timeout, takenOver); err != nil {
			return err
		}

		o.Printf("%s: %s", v1alpha2.FullName(p.Provider),
			conditions.GetMessage(p.Provider, v1alpha2.ProviderInstalledCondition))

		if err := o.perform(ctx, p.After); err != nil {
			return err
		}
	}

	return o.perform(ctx, found.After)
}

// perform performs steps of the takeover.
func (o *options) perform(ctx context.Context, steps []Step) error {
	for _, step := range steps {
		o.Printf("%s", step.Description)

		if err := step.Do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.Description, err)
		}
	}

	return nil
}

// create creates the Secret and the resource of a proposal.
func (o *options) create(ctx context.Context, cluster *cli.Cluster, p *proposal) error {
	if p.exists {
		o.Printf("%s exists", v1alpha2.FullName(p.Provider))
		return nil
	}

	if p.secret != nil {
		if err := createSecret(ctx, cluster, p.secret); err != nil {
			return err
		}

		o.Printf("Secret %s created", client.ObjectKeyFromObject(p.secret))
	}

	if err := cluster.Client.Create(ctx, p.Provider, cli.FieldOwner); err != nil {
		return fmt.Errorf("create %s: %w", v1alpha2.FullName(p.Provider), err)
	}

	o.Printf("%s created", v1alpha2.FullName(p.Provider))

	return nil
}

// createSecret creates a Secret. One that an earlier attempt has created is used; one with other content is not
// replaced.
func createSecret(ctx context.Context, cluster *cli.Cluster, secret *corev1.Secret) error {
	name := client.ObjectKeyFromObject(secret)

	err := cluster.Client.Create(ctx, secret.DeepCopy(), cli.FieldOwner)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}

	existing := &corev1.Secret{}
	if err := cluster.Client.Get(ctx, name, existing); err != nil {
		return fmt.Errorf("read Secret %s: %w", name, err)
	}

	values := map[string]string{}
	for key, value := range existing.Data {
		values[key] = string(value)
	}

	if !maps.Equal(values, secret.StringData) {
		return fmt.Errorf("the variables in Secret %s, which exists, are others than the provider was installed with; "+
			"delete the Secret, or create the resource yourself to use it", name)
	}

	return nil
}
