package setup

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// carryOut carries out a plan. It can be repeated after an error.
func (o *options) carryOut(ctx context.Context, cluster *cli.Cluster, p *setupPlan) error {
	if p.certManager != nil {
		o.Printf("Installing %s", p.certManager)

		if err := p.certManager.apply(ctx, o.cluster.Getter(), o.wait.Timeout); err != nil {
			return err
		}
	}

	if p.operator != nil {
		o.Printf("Installing %s", p.operator)

		objects := append([]client.Object{namespace(p.operator.namespace)}, p.operator.mounted...)
		if err := create(ctx, cluster, objects...); err != nil {
			return err
		}

		if err := p.operator.apply(ctx, o.cluster.Getter(), o.wait.Timeout); err != nil {
			return err
		}
	}

	for _, provider := range p.providers {
		if provider.exists {
			if err := o.updateVariables(ctx, cluster, provider); err != nil {
				return err
			}

			continue
		}

		if err := create(ctx, cluster, provider.objects()...); err != nil {
			return err
		}

		o.Printf("%s created", v1alpha2.FullName(provider.resource))
	}

	resources := cli.Map(p.providers, func(added *provider) v1alpha2.Provider { return added.resource })

	return cluster.WaitAll(ctx, o.Options, resources, o.wait, cli.Ready)
}

// updateVariables writes the values of variables that have changed to the Secret of a provider that exists, and asks
// for a reconcile, without which a provider that is healthy keeps the values that it has.
func (o *options) updateVariables(ctx context.Context, cluster *cli.Cluster, p *provider) error {
	secret := p.secret()
	if secret == nil || p.foreign != "" {
		return nil
	}

	if err := create(ctx, cluster, secret); err != nil {
		return err
	}

	change := map[string]any{"metadata": cli.TryAgain()}

	if _, named := p.resource.GetSpec().VariablesSecret(""); !named {
		change["spec"] = map[string]any{"secretName": secret.Name}
	}

	if err := cluster.Patch(ctx, p.resource, change); err != nil {
		return err
	}

	o.Printf("Secret %s updated: %s", p.secretKey(), p.names())

	return nil
}

// create creates objects that do not exist, and sets the keys of Secrets that do.
func create(ctx context.Context, cluster *cli.Cluster, objects ...client.Object) error {
	for _, object := range objects {
		kind := object.GetObjectKind().GroupVersionKind()

		err := cluster.Client.Create(ctx, object, cli.FieldOwner)
		if apierrors.IsAlreadyExists(err) {
			err = update(ctx, cluster, object)
		}

		if err != nil {
			return fmt.Errorf("create %s %s: %w", kind.Kind, client.ObjectKeyFromObject(object), err)
		}
	}

	return nil
}

// update sets the keys of a Secret, of an earlier attempt or of the user. Other objects stay as they are.
func update(ctx context.Context, cluster *cli.Cluster, object client.Object) error {
	secret, isSecret := object.(*corev1.Secret)
	if !isSecret {
		return nil
	}

	existing := &corev1.Secret{}
	if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(object), existing); err != nil {
		return err
	}

	base := existing.DeepCopy()
	existing.StringData = secret.StringData

	if existing.Data == nil {
		existing.Data = map[string][]byte{}
	}

	maps.Copy(existing.Data, secret.Data)

	return cluster.Client.Patch(ctx, existing, client.MergeFrom(base), cli.FieldOwner)
}

// namespace returns a Namespace.
func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}

// objects returns the provider's Namespace, the Secret with its variables if it has any, and its resource; none of a
// provider that exists.
func (p *provider) objects() []client.Object {
	if p.exists {
		return nil
	}

	objects := []client.Object{namespace(p.resource.GetNamespace())}

	if secret := p.secret(); secret != nil {
		p.resource.GetSpec().SecretName = secret.Name
		objects = append(objects, secret)
	}

	return append(objects, p.resource)
}

// secretKey returns the name of the Secret that the command writes.
func (p *provider) secretKey() types.NamespacedName {
	return types.NamespacedName{Namespace: p.resource.GetNamespace(), Name: v1alpha2.Label(p.resource) + "-variables"}
}

// secret returns the Secret with the variables that have values; nil if there are none.
func (p *provider) secret() *corev1.Secret {
	values := map[string]string{}

	for _, v := range p.variables {
		if v.from != "" {
			values[v.name] = v.value
		}
	}

	if len(values) == 0 {
		return nil
	}

	key := p.secretKey()

	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		StringData: values,
	}
}
