package export

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/config"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// definitionName is the name of the CRD of the items.
var definitionName = "providers." + clusterctlv1.GroupVersion.Group

// newDefinition returns the CRD of the items as clusterctl installs it.
func newDefinition() (*unstructured.Unstructured, error) {
	d := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(config.ClusterctlAPIManifest, &d.Object); err != nil {
		return nil, fmt.Errorf("read clusterctl's manifest: %w", err)
	}

	d.SetLabels(map[string]string{clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelInventoryValue})

	return d, nil
}

// watchDefinition returns a channel that receives something after each change of the CRD.
func (i *Inventory) watchDefinition(ctx context.Context) (chan struct{}, error) {
	informer, err := i.Definitions.GetInformer(ctx, &apiextensionsv1.CustomResourceDefinition{})
	if err != nil {
		return nil, err
	}

	changed := make(chan struct{}, 1)
	look := func(object any) {
		if name, err := toolscache.DeletionHandlingObjectToName(object); err == nil && name.Name == definitionName {
			notify(changed)
		}
	}

	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    look,
		UpdateFunc: func(_, object any) { look(object) },
		DeleteFunc: look,
	})
	if err != nil {
		return nil, err
	}

	if !i.Definitions.WaitForCacheSync(ctx) {
		return nil, errors.New("CustomResourceDefinitions could not be read")
	}

	return changed, nil
}

// awaitKind waits until the kind of the items is in the API server's discovery, which is shortly after its CRD is
// served.
func (i *Inventory) awaitKind(ctx context.Context) error {
	kind := clusterctlv1.GroupVersion.WithKind("Provider")

	return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(context.Context) (bool, error) {
		_, err := i.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			return false, nil
		}

		return err == nil, err
	})
}

// notify sends to a channel of changes, unless its receiver will look at a change anyway.
func notify(changed chan struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// ensureDefinition reports whether the CRD is served. It creates one that does not exist, and leaves an existing one
// as it is.
func (i *Inventory) ensureDefinition(ctx context.Context) (bool, error) {
	existing, err := i.definition(ctx)
	if existing != nil || err != nil {
		return existing != nil && isServed(existing), err
	}

	if err := i.mayInstall(ctx); err != nil {
		return false, err
	}

	d, err := newDefinition()
	if err != nil {
		return false, err
	}

	return false, client.IgnoreAlreadyExists(i.client.Create(ctx, d, client.FieldOwner(v1alpha2.FieldOwner)))
}

// isDefinitionServed reports whether the CRD is served now.
func (i *Inventory) isDefinitionServed(ctx context.Context) bool {
	existing, err := i.definition(ctx)

	return err == nil && existing != nil && isServed(existing)
}

// definition returns the CRD in the cluster; nil if there is none.
func (i *Inventory) definition(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	existing := &apiextensionsv1.CustomResourceDefinition{}

	err := i.Definitions.Get(ctx, client.ObjectKey{Name: definitionName}, existing)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	return existing, err
}

// mayInstall returns an error if the operator has no permission to create CRDs. It asks first, so that no request
// is denied in the API server's audit log.
func (i *Inventory) mayInstall(ctx context.Context) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions",
		},
	}}
	if err := i.client.Create(ctx, review); err != nil {
		return err
	}

	if !review.Status.Allowed {
		return errors.New("the operator has no permission to create CustomResourceDefinitions")
	}

	return nil
}

// isServed reports whether a CRD serves items in the version that is written here, and is not being deleted.
func isServed(d *apiextensionsv1.CustomResourceDefinition) bool {
	if !d.DeletionTimestamp.IsZero() {
		return false
	}

	established := false
	for _, c := range d.Status.Conditions {
		established = established || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}

	for _, version := range d.Spec.Versions {
		if version.Name == clusterctlv1.GroupVersion.Version && version.Served {
			return established
		}
	}

	return false
}
