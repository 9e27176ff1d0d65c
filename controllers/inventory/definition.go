package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/config"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// The API server usually serves a new CRD within a second.
const servedInterval, servedTimeout = 200 * time.Millisecond, 10 * time.Second

// CreateDefinition creates the CRD of the items, as clusterctl installs it, and waits until it is served. One that
// exists stays as it is.
func CreateDefinition(ctx context.Context, c client.Client) error {
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(config.ClusterctlAPIManifest, &definition.Object); err != nil {
		return fmt.Errorf("read clusterctl's manifest: %w", err)
	}

	definition.SetLabels(map[string]string{
		clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelInventoryValue,
	})

	existing := definition.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(existing), existing); !apierrors.IsNotFound(err) {
		return err
	}

	if err := mayCreate(ctx, c); err != nil {
		return err
	}

	err := c.Create(ctx, definition, client.FieldOwner(v1alpha2.FieldOwner))
	if client.IgnoreAlreadyExists(err) != nil {
		return err
	}

	items := &metav1.PartialObjectMetadataList{}
	items.SetGroupVersionKind(clusterctlv1.GroupVersion.WithKind("ProviderList"))

	// The first list of a new kind takes the API server a second, for which no installation has to wait.
	return wait.PollUntilContextTimeout(ctx, servedInterval, servedTimeout, true, func(ctx context.Context) (bool, error) {
		err := c.List(ctx, items, client.Limit(1))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}

		return err == nil, err
	})
}

// mayCreate returns an error if the operator has no permission to create CRDs. It asks first, so that no request is
// denied in the API server's audit log.
func mayCreate(ctx context.Context, c client.Client) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions",
		},
	}}
	if err := c.Create(ctx, review); err != nil {
		return err
	}

	if !review.Status.Allowed {
		return errors.New("the operator has no permission to create CustomResourceDefinitions")
	}

	return nil
}
