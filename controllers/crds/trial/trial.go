// Package trial finds out which stored objects a changed CustomResourceDefinition would break. It tries the change on
// them with the API server's own code: it drops what the new schema does not define, and validates what is left by the
// old schema and by the new one.
//
// Nothing here writes to a cluster, and no message contains values of an object.
package trial

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/capstan-project/capstan/controllers/crds/versions"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/paging"
)

const (
	// maxBroken ends the trial of a CRD: that many broken objects prove the point.
	maxBroken = 100
	// maxFindings bounds the findings about a CRD. Objects with many fields could have one for each.
	maxFindings = 100
	// pageSize limits the objects in memory.
	pageSize = 20
)

// Objects reads the objects of a cluster; see ClusterObjects.
type Objects interface {
	// All returns every object of a resource, in the requested version, with one page of them in
	// memory at a time. A pair with an error is the last one.
	All(ctx context.Context, resource schema.GroupVersionResource) iter.Seq2[*unstructured.Unstructured, error]
	// Stored is like All for objects that are stored in the version, and need no conversion. It is an error of the
	// conversion if one is not, while their conversion fails.
	Stored(ctx context.Context, resource schema.GroupVersionResource) iter.Seq2[*unstructured.Unstructured, error]
}

// ClusterObjects reads objects from an API server.
type ClusterObjects struct {
	Client dynamic.Interface
}

// All implements Objects.
func (c ClusterObjects) All(
	ctx context.Context,
	resource schema.GroupVersionResource,
) iter.Seq2[*unstructured.Unstructured, error] {
	list := c.Client.Resource(resource).List

	return func(yield func(*unstructured.Unstructured, error) bool) {
		for page, err := range paging.Pages(ctx, metav1.ListOptions{Limit: pageSize}, list) {
			if err != nil {
				yield(nil, err)
				return
			}

			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
		}
	}
}

// Stored implements Objects. A list may have objects that were converted long ago, so each is read again.
func (c ClusterObjects) Stored(
	ctx context.Context,
	resource schema.GroupVersionResource,
) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for listed, err := range c.All(ctx, resource) {
			if err != nil {
				yield(nil, err)
				return
			}

			objects := c.Client.Resource(resource).Namespace(listed.GetNamespace())

			o, err := objects.Get(ctx, listed.GetName(), metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue // it was deleted meanwhile
			}

			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

// Change is the change of one CRD.
type Change struct {
	// Live is the complete CRD in the cluster.
	Live *apiextensionsv1.CustomResourceDefinition
	// Desired is the CRD that would be applied.
	Desired *apiextensionsv1.CustomResourceDefinition
	// Users are the labels of the other providers that need a version of the CRD, by its name.
	Users map[string][]string
}

// Run returns what a change would break. It reads the objects in the version that they are stored in, and not at all if
// the change can break none. An error means that objects could not be read for a reason that may pass, and says nothing
// about the change. That their conversion fails is a finding, because the change may be what repairs it.
func Run(ctx context.Context, change Change, objects Objects) ([]Finding, error) {
	before := findings{crd: change.Live.Name}

	removed := change.removedVersions()
	for _, version := range removed {
		for _, label := range change.Users[version] {
			before.add(Problem{
				Version: version,
				Message: "the version is removed, but " + label + " needs it",
				Remedy:  "upgrade " + label + " first to a version that does not",
			})
		}
	}

	// A CRD that was established stays so, and one that never was has no objects.
	from := versions.Preferred(change.Live)
	if from == nil || apihelpers.IsCRDConditionFalse(change.Live, apiextensionsv1.Established) ||
		len(removed)+len(change.successors(from)) == 0 {
		return before.all, nil
	}

	found, failed := change.tryOn(ctx, from, objects.All, before)

	// Objects that were never migrated are all stored in an older version.
	for _, stored := range versions.Stored(change.Live) {
		if !object.IsConversion(failed) {
			break
		}

		inStored, err := change.tryOn(ctx, stored, objects.Stored, before)
		if !object.IsConversion(err) {
			found, failed = inStored, err
		}
	}

	if object.IsConversion(failed) {
		return append(before.all, unread(change.Live.Name, from.Name, failed)), nil
	}

	return found.all, failed
}

// read reads objects; see Objects.
type read func(context.Context, schema.GroupVersionResource) iter.Seq2[*unstructured.Unstructured, error]

// tryOn tries the change on objects that are read in one version, and adds its findings to those from before.
func (c Change) tryOn(
	ctx context.Context, from *apiextensionsv1.CustomResourceDefinitionVersion, objects read, before findings,
) (findings, error) {
	var tries []*try

	found := findings{crd: before.crd, all: slices.Clone(before.all)}
	removed, to := c.removedVersions(), c.successors(from)

	for object, err := range objects(ctx, versions.Resource(c.Live, from.Name)) {
		// Compiling the schemas is slow, so it is left out if there are no objects.
		if err == nil && tries == nil {
			tries, err = newTries(c, from, to)
		}

		if err != nil {
			return findings{}, fmt.Errorf("try the new CustomResourceDefinition on the %s in version %s: %w",
				c.Live.Name, from.Name, err)
		}

		problems := c.lostWriters(object, removed)
		for _, try := range tries {
			problems = append(problems, try.problems(ctx, object)...)
		}

		if found.record(object, problems); found.broken == maxBroken {
			break
		}
	}

	return found, nil
}

// removedVersions returns the names of the versions that are removed or no longer served.
func (c Change) removedVersions() []string {
	var removed []string

	for _, from := range c.Live.Spec.Versions {
		if to := versions.Find(c.Desired, from.Name); to == nil || from.Served && !to.Served {
			removed = append(removed, from.Name)
		}
	}

	return removed
}

// successors returns the versions whose schemas the objects of a version have to fit, unless they do already.
func (c Change) successors(
	from *apiextensionsv1.CustomResourceDefinitionVersion,
) []*apiextensionsv1.CustomResourceDefinitionVersion {
	var to []*apiextensionsv1.CustomResourceDefinitionVersion

	same := versions.Find(c.Desired, from.Name)
	if same != nil && (c.Live.Spec.PreserveUnknownFields != c.Desired.Spec.PreserveUnknownFields ||
		!equality.Semantic.DeepEqual(from.Schema, same.Schema)) {
		to = append(to, same)
	}

	// A webhook is trusted to convert all fields. Without one, objects are stored as they are.
	conversion := c.Desired.Spec.Conversion
	converted := conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter

	stored := from.Storage || slices.Contains(c.Live.Status.StoredVersions, from.Name)

	storage := versions.Storage(c.Desired)
	if stored && storage != nil && storage.Name != from.Name && !converted {
		to = append(to, storage)
	}

	return to
}

// lostWriters returns a problem for each removed version that the managedFields of an object name. Server-side apply
// fails for such an object once the version is gone.
func (c Change) lostWriters(object *unstructured.Unstructured, removed []string) []Problem {
	var problems []Problem

	for _, version := range removed {
		apiVersion := schema.GroupVersion{Group: c.Live.Spec.Group, Version: version}.String()

		if slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.APIVersion == apiVersion
		}) {
			problems = append(problems, Problem{
				Version: version, Message: "the version is removed, but objects were written in it", Remedy: remedyClients,
			})
		}
	}

	return problems
}

// findings are collected about one CRD.
type findings struct {
	crd string
	all []Finding
	// broken is the number of objects that break.
	broken int
}

// record adds an object that breaks to the findings about its problems.
func (f *findings) record(object *unstructured.Unstructured, problems []Problem) {
	if len(problems) == 0 {
		return
	}

	f.broken++

	for i, p := range problems {
		if slices.Contains(problems[:i], p) {
			continue // such as in another item of the same list
		}

		if found := f.add(p); found != nil {
			found.count(object)
		}
	}
}

// add returns the finding about a problem, which it adds if there is none; nil if there are too many.
func (f *findings) add(p Problem) *Finding {
	i := slices.IndexFunc(f.all, func(f Finding) bool { return f.Problem == p })
	if i >= 0 {
		return &f.all[i]
	}

	if len(f.all) == maxFindings {
		return nil
	}

	f.all = append(f.all, Finding{CRD: f.crd, Problem: p})

	return &f.all[len(f.all)-1]
}
