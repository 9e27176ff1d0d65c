package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

// Patch is a change of an object.
type Patch struct {
	Type types.PatchType
	Data []byte
}

// NewPatch returns the three-way patch that turns live into the target. It sets all fields of the
// target, removes the fields of base that the target does not have, and keeps all others, which
// other programs have added, except owner references to provider resources. Built-in kinds are merged by
// their own rules, list items by key; custom resources are merged as JSON. It returns nil if there is
// nothing to change.
func NewPatch(target *resource.Info, base runtime.Object, live *unstructured.Unstructured) (*Patch, error) {
	patch, err := newPatch(target, base, live)
	if err != nil {
		return nil, fmt.Errorf("compute the change: %w", err)
	}

	if len(patch.Data) == 0 || string(patch.Data) == "{}" {
		return nil, nil
	}

	return patch, nil
}

func newPatch(target *resource.Info, base runtime.Object, live *unstructured.Unstructured) (*Patch, error) {
	base = withProviderOwners(base, live)
	wantedObject := target.Object

	if isAggregated(target.Object) {
		base, wantedObject = withoutRules(base), withoutRules(wantedObject)
	}

	before, err := json.Marshal(base)
	if err != nil {
		return nil, err
	}

	wanted, err := json.Marshal(withScopes(wantedObject))
	if err != nil {
		return nil, err
	}

	current, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}

	typed := asVersioned(target)
	if _, custom := typed.(runtime.Unstructured); custom {
		data, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, wanted, current)
		return &Patch{Type: types.MergePatchType, Data: data}, err
	}

	schema, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, err
	}

	data, err := strategicpatch.CreateThreeWayMergePatch(before, wanted, current, schema, true)

	return &Patch{Type: types.StrategicMergePatchType, Data: data}, err
}

// isAggregated reports whether an object is a ClusterRole whose rules Kubernetes gathers from others.
func isAggregated(o runtime.Object) bool {
	role, ok := o.(*unstructured.Unstructured)
	if !ok || role.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}) {
		return false
	}

	_, aggregated := role.Object["aggregationRule"]

	return aggregated
}

// withoutRules returns a ClusterRole without rules. A manifest has none for an aggregated one, so a patch would take
// all permissions away until Kubernetes gathers the rules again.
func withoutRules(o runtime.Object) runtime.Object {
	role, ok := o.DeepCopyObject().(*unstructured.Unstructured)
	if !ok {
		return o
	}

	delete(role.Object, "rules")

	return role
}

// withScopes returns a webhook configuration whose rules have the scope that the API server adds: lists of rules are
// equal only as a whole. It returns all other objects as they are.
func withScopes(o runtime.Object) runtime.Object {
	configuration, ok := o.(*unstructured.Unstructured)
	if !ok || !strings.HasSuffix(configuration.GetKind(), "WebhookConfiguration") ||
		configuration.GroupVersionKind().Group != admissionregistrationv1.GroupName {
		return o
	}

	configuration = configuration.DeepCopy()

	for _, webhook := range bundle.NestedMaps(configuration.Object, "webhooks") {
		for _, rule := range bundle.NestedMaps(webhook, "rules") {
			if rule["scope"] == nil {
				rule["scope"] = string(admissionregistrationv1.AllScopes)
			}
		}
	}

	return configuration
}

// builtIn are the kinds of Kubernetes itself. Those that a program adds to client-go's scheme are none.
var builtIn = sync.OnceValue(func() *runtime.Scheme {
	kinds := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(kinds))
	utilruntime.Must(apiextensionsv1.AddToScheme(kinds))

	return kinds
})

// asVersioned returns an object as the type of its kind, or as it is if it is a custom resource.
func asVersioned(info *resource.Info) runtime.Object {
	version := info.Mapping.GroupVersionKind.GroupVersion()

	typed, err := runtime.ObjectConvertor(builtIn()).ConvertToVersion(info.Object, version)
	if err != nil {
		return info.Object
	}

	return typed
}

// DryRun returns what would become of an object with the patch.
func (c *Client) DryRun(info *resource.Info, patch *Patch) (*unstructured.Unstructured, error) {
	patched, err := c.helper(info).DryRun(true).Patch(info.Namespace, info.Name, patch.Type, patch.Data, nil)
	if err != nil {
		return nil, err
	}

	return patched.(*unstructured.Unstructured), nil
}

// DryRunTarget sends what the action would change about the target's objects as dry runs, where bases are
// the manifests that it starts from. It does nothing if none of the objects exists: nothing runs then that
// the action could harm. The error is a *DryRunError if the API server would refuse a change, and an
// *UnavailableError if that could not be found out for a reason that may go away by itself.
//
// Of objects that wait for earlier waves, only what these cannot change is a problem. Objects of own kinds are left out
// if their CRDs change first.
func (c *Client) DryRunTarget(bases []string, withOwn bool) error {
	if len(c.target.live) == 0 {
		return nil
	}

	lists, err := c.parseAll(bases)
	if err != nil {
		return err
	}

	checked := c.target.objects.Filter(func(info *resource.Info) bool { return withOwn || c.isOther(info) })

	err = c.dryRunEach(checked, lists)

	if refused := (*RejectedError)(nil); errors.As(err, &refused) {
		err = &DryRunError{Objects: refused.Objects}
	}

	return err
}

// dryRunEach tries objects of the target, where bases are those that the action starts from.
func (c *Client) dryRunEach(checked ResourceList, bases []ResourceList) error {
	first := waves.Split(c.target.objects, c.applied)[0]

	return c.each(checked, func(info *resource.Info) error {
		change := dryRunChange{
			later:   c.applied(info) > c.applied(first[0]),
			defined: c.isDefinedEarlier(info),
			brings:  c.target.brings,
		}

		_, err := c.dryRunOne(info, find(bases, info))

		return change.problem(err)
	})
}

// isDefinedEarlier reports whether an earlier wave of the target has the CRD of an object.
func (c *Client) isDefinedEarlier(info *resource.Info) bool {
	return slices.ContainsFunc(c.target.objects, func(crd *resource.Info) bool {
		return crd.Mapping.GroupVersionKind.GroupKind() == crdKind &&
			crd.Name == info.Mapping.Resource.GroupResource().String() && c.applied(crd) < c.applied(info)
	})
}

// dryRunOne is applyOne as a dry run. It returns what the object would become.
func (c *Client) dryRunOne(info *resource.Info, bases []runtime.Object) (*unstructured.Unstructured, error) {
	live := c.target.live[info]
	if live == nil {
		return c.dryRunCreation(info)
	}

	if c.isLeft(info, live) {
		return live, nil
	}

	if len(bases) == 0 {
		bases = c.adoptionBases(info, live)
	}

	for _, base := range bases {
		patch, err := NewPatch(info, base, live)
		if err != nil {
			return nil, err
		}

		if patch == nil {
			continue
		}

		patched, err := c.DryRun(info, patch)
		if apierrors.IsInvalid(err) && c.needsReplacement(info) {
			return info.Object.(*unstructured.Unstructured), checkReplacement(info, live, err)
		}

		if err != nil {
			return nil, err
		}

		live = patched
	}

	return live, nil
}

// dryRunCreation is create as a dry run. An object in a namespace that would be created before is not tried.
func (c *Client) dryRunCreation(info *resource.Info) (*unstructured.Unstructured, error) {
	created, err := c.helper(info).DryRun(true).Create(info.Namespace, true, info.Object)

	if c.createsNamespace(info, err) {
		namespace, err := c.namespaceOf(info)
		if err != nil {
			return nil, err
		}

		_, err = c.helper(namespace).DryRun(true).Create("", true, namespace.Object)

		return info.Object.(*unstructured.Unstructured), err
	}

	if err != nil {
		return nil, err
	}

	return created.(*unstructured.Unstructured), nil
}

// Adoption is an object before and after it is applied for the first time.
type Adoption struct {
	// Before is the object in the cluster; nil if it does not exist. After has what the API server adds.
	Before, After *unstructured.Unstructured
}

// PreviewAdoption finds out by dry runs what would become of objects if they were applied without having been
// installed by the release before. Objects whose kinds are not served are left out. The error is a
// *ConflictError if an object belongs to another release, and otherwise one of those of an action.
func (c *Client) PreviewAdoption(objects []*unstructured.Unstructured) ([]Adoption, error) {
	list, _, err := c.Resolve(objects)
	if err != nil {
		return nil, err
	}

	if err := c.setTarget(list, list); err != nil {
		return nil, err
	}

	after := make(map[*resource.Info]*unstructured.Unstructured, len(list))

	err = c.each(list, func(info *resource.Info) error {
		adopted, err := c.dryRunOne(info, nil)

		c.mu.Lock()
		defer c.mu.Unlock()

		after[info] = adopted

		return err
	})
	if err != nil {
		return nil, err
	}

	adoptions := make([]Adoption, 0, len(list))
	for _, info := range list {
		adoptions = append(adoptions, Adoption{Before: c.target.live[info], After: after[info]})
	}

	return adoptions, nil
}
