package takeover

import (
	"context"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
)

// Version returns the version of a provider that another program has installed, and whose objects are about to be
// adopted: according to the status that cluster-api-operator has left on the resource, to clusterctl's inventory, or
// else to the image of a Deployment. It is empty if there are no such objects, or if none of these says it. It takes
// one request at most.
func Version(
	ctx context.Context, reader client.Reader, p v1alpha2.Provider, objects []*unstructured.Unstructured,
) (string, error) {
	if len(objects) == 0 {
		return "", nil
	}

	if installed := p.GetStatus().InstalledVersion; installed != nil && *installed != "" {
		return *installed, nil
	}

	version, err := listedVersion(ctx, reader, p)
	if version != "" || err != nil {
		return version, err
	}

	for _, o := range objects {
		d := &appsv1.Deployment{}
		if o.GetKind() != "Deployment" || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d) != nil {
			continue
		}

		if version := imageVersion(d); version != "" {
			return version, nil
		}
	}

	return "", nil
}

// listedVersion returns the version that clusterctl's inventory has of a provider; empty if there is none, or if it
// must not be read.
func listedVersion(ctx context.Context, reader client.Reader, p v1alpha2.Provider) (string, error) {
	items := &unstructured.UnstructuredList{}
	items.SetGroupVersionKind(clusterctlv1.GroupVersion.WithKind("ProviderList"))

	err := reader.List(ctx, items, client.InNamespace(p.GetNamespace()),
		client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(p)}, client.Limit(1))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}

	if err != nil {
		return "", fmt.Errorf("read clusterctl's inventory: %w", err)
	}

	if len(items.Items) == 0 {
		return "", nil
	}

	version, _, _ := unstructured.NestedString(items.Items[0].Object, "version")

	return version, nil
}

// imageVersion returns the tag of the first image of a Deployment whose tag is a version; empty if there is none. The
// manager's container comes first.
func imageVersion(d *appsv1.Deployment) string {
	containers := d.Spec.Template.Spec.Containers

	for _, isManager := range []bool{true, false} {
		for _, c := range containers {
			if (c.Name == "manager") != isManager {
				continue
			}

			if tag := versionTag(c); tag != "" {
				return tag
			}
		}
	}

	return ""
}

// versionTag returns the tag of a container's image; empty if it is no version.
func versionTag(c corev1.Container) string {
	image, err := reference.ParseNormalizedNamed(c.Image)
	if err != nil {
		return ""
	}

	tagged, isTagged := image.(reference.Tagged)
	if !isTagged || !strings.HasPrefix(tagged.Tag(), "v") || !ranges.IsExact(tagged.Tag()) {
		return ""
	}

	return tagged.Tag()
}
