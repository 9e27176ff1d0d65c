package harness

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
)

// Identities returns the UIDs and generations of all objects of providers and of all pods, by kind and name. The
// generation of a Deployment changes with its annotations; a change of its pods shows in its ReplicaSets.
func Identities(ctx context.Context, c client.Client) (map[string]string, error) {
	identities := map[string]string{}
	ofProviders := client.HasLabels{v1alpha2.ClusterctlProviderLabel}

	for _, kind := range []struct {
		list    client.ObjectList
		options []client.ListOption
	}{
		{&corev1.PodList{}, nil},
		{&appsv1.ReplicaSetList{}, nil},
		{&corev1.SecretList{}, []client.ListOption{ofProviders}},
		{&corev1.ServiceAccountList{}, []client.ListOption{ofProviders}},
		{&corev1.ServiceList{}, []client.ListOption{ofProviders}},
		{&appsv1.DeploymentList{}, []client.ListOption{ofProviders}},
		{&rbacv1.ClusterRoleList{}, []client.ListOption{ofProviders}},
		{&rbacv1.ClusterRoleBindingList{}, []client.ListOption{ofProviders}},
		{&apiextensionsv1.CustomResourceDefinitionList{}, []client.ListOption{ofProviders}},
	} {
		if err := c.List(ctx, kind.list, kind.options...); err != nil {
			return nil, err
		}

		items, err := meta.ExtractList(kind.list)
		if err != nil {
			return nil, err
		}

		for _, item := range items {
			o := item.(client.Object)
			identity := string(o.GetUID())

			if _, isDeployment := o.(*appsv1.Deployment); !isDeployment {
				identity += fmt.Sprintf(", generation %d", o.GetGeneration())
			}

			identities[fmt.Sprintf("%T %s", o, client.ObjectKeyFromObject(o))] = identity
		}
	}

	return identities, nil
}

// Revisions returns the UIDs and Helm's statuses of the records of all releases, by namespace and name.
func Revisions(ctx context.Context, c client.Client) (map[string]string, error) {
	records := &corev1.SecretList{}
	if err := c.List(ctx, records, client.MatchingLabels{"owner": "helm"}); err != nil {
		return nil, err
	}

	revisions := map[string]string{}

	for i := range records.Items {
		record := &records.Items[i]
		revisions[client.ObjectKeyFromObject(record).String()] = string(record.UID) + ", " + record.Labels["status"]
	}

	return revisions, nil
}

// Writes returns what a user has written since a time and keep returns true for, sorted. Leases, Events and requests
// that the API server has refused are left out.
func Writes(b *bed.Bed, user string, since time.Time, keep func(bed.Request) bool) ([]string, error) {
	requests, err := b.Requests(func(r bed.Request) bool {
		written := r.Write() && r.Code < http.StatusBadRequest && !r.Lease() && r.Resource != "events"
		return r.User == user && written && r.Received.After(since) && keep(r)
	})
	if err != nil {
		return nil, err
	}

	writes := make([]string, 0, len(requests))

	for _, r := range requests {
		resource := strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")
		object := strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
		writes = append(writes, fmt.Sprintf("%s %s %s", r.Verb, resource, object))
	}

	slices.Sort(writes)

	return writes, nil
}

// Concerns returns a function that reports whether a request concerns an object in a namespace, or one without a
// namespace, and more than the status of a provider resource.
func Concerns(namespace string) func(bed.Request) bool {
	return func(r bed.Request) bool {
		reported := r.Group == v1alpha2.GroupVersion.Group && r.Subresource == "status"
		return !reported && (r.Namespace == namespace || r.Namespace == "")
	}
}
