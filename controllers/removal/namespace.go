package removal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/usage"
)

// CheckNamespace keeps the namespace, and the provider with it, while it contains something else that
// would be deleted with it.
func (r *Removal) CheckNamespace(ctx context.Context) error {
	namespace := r.Provider.GetNamespace()

	neighbors, err := r.others(ctx, func(p v1alpha2.Provider) bool { return p.GetNamespace() == namespace })
	if err != nil {
		return err
	}

	isDeleted := func(p v1alpha2.Provider) bool { return !p.GetDeletionTimestamp().IsZero() }
	if staying := slices.DeleteFunc(slices.Clone(neighbors), isDeleted); len(staying) > 0 {
		return r.namespaceUsed(namesOf(staying))
	}

	releases, err := r.otherReleases(ctx, neighbors)
	if err != nil {
		return err
	}

	if len(releases) > 0 {
		return r.namespaceUsed("Helm releases " + strings.Join(releases, ", "))
	}

	found, err := r.usage(ctx, usage.Query{Namespace: namespace})
	if err != nil || found.Unused() {
		return err
	}

	return r.namespaceUsed(found.Message())
}

// otherReleases lists the Helm releases of the namespace that belong to no provider.
func (r *Removal) otherReleases(ctx context.Context, neighbors []v1alpha2.Provider) ([]string, error) {
	releases, err := r.Target.Releases.Names(ctx, r.Provider.GetNamespace())
	if err != nil {
		return nil, err
	}

	own := neighbors
	if !r.foreign {
		own = append(own, r.Provider)
	}

	for _, p := range own {
		of := v1alpha2.ReleaseName(p)
		releases = slices.DeleteFunc(releases, func(name string) bool { return name == of })
	}

	return releases, nil
}

func (r *Removal) namespaceUsed(by string) error {
	return blocked(
		"namespace %s is not deleted because it contains other things: %s; remove them first, "+
			"or remove the annotation %s to keep the namespace",
		r.Provider.GetNamespace(), by, v1alpha2.DeleteNamespaceAnnotation)
}

// DeleteNamespace deletes the resource's namespace. Of several resources
// that are deleted together, the one with the greatest UID does.
func (r *Removal) DeleteNamespace(ctx context.Context) error {
	name := r.Provider.GetNamespace()

	neighbors, err := r.others(ctx, func(p v1alpha2.Provider) bool { return p.GetNamespace() == name })
	if err != nil {
		return err
	}

	for _, p := range neighbors {
		if v1alpha2.Asks(p, v1alpha2.DeleteNamespaceAnnotation) && cmp.Compare(p.GetUID(), r.Provider.GetUID()) > 0 {
			return nil
		}
	}

	if len(neighbors) > 0 {
		return awaiting("the namespace is deleted as soon as these are gone: %s", namesOf(neighbors))
	}

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := r.Target.Client.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete namespace %s: %w; remove the annotation %s to keep it",
			name, err, v1alpha2.DeleteNamespaceAnnotation)
	}

	return nil
}
