package release

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/go-logr/logr"
	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
)

// client is the Kubernetes client of one action. Helm asks it to build, create, update and delete
// objects; how it does that is Capstan's:
//   - objects of a kind are applied at the same time, and each that the API server refuses is kept with the reason;
//   - what was looked at once is not looked at again: an object costs one GET, and one write if it changes;
//   - CustomResourceDefinitions and Namespaces are never deleted, and what another release owns is never touched;
//   - a manifest with a kind that is gone can still be upgraded from and uninstalled.
//
// The rest, such as waiting for hooks, is Helm's. It embeds *kube.Client, not kube.Interface,
// because actions ask for optional interfaces.
type client struct {
	*kube.Client
	cluster         *cluster
	namespace, name string // of the release
	log             logr.Logger

	target   target
	attempts []string // manifests, see store

	mu      sync.Mutex // guards report
	report  Result
	failure error // the first; Helm passes on its text at best
}

// target is the manifest of the action.
type target struct {
	manifest string
	objects  kube.ResourceList
	live     map[*resource.Info]*unstructured.Unstructured
}

func newClient(c *cluster, namespace, name string, log logr.Logger) *client {
	k := kube.New(c)
	k.Namespace = namespace
	k.Log = helmLog(log)

	return &client{Client: k, cluster: c, namespace: namespace, name: name, log: log}
}

// IsReachable asks nothing: the first request of the action will tell.
func (c *client) IsReachable() error { return nil }

// Build makes a resource list of a manifest. Objects of unknown kinds are left out unless strict,
// which Helm is for hooks alone: what a release was made of must not stand in the way of its
// upgrade or removal. Nothing is validated here, the API server will do that.
func (c *client) Build(reader io.Reader, strict bool) (kube.ResourceList, error) {
	manifest, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}

	if c.target.objects != nil && string(manifest) == c.target.manifest {
		return c.target.objects, nil
	}

	list, unknown, err := c.parse(string(manifest))
	if err != nil {
		return nil, c.fail(err)
	}

	if strict && len(unknown) > 0 {
		return nil, c.fail(&UnknownKindError{Objects: unknown})
	}

	for _, object := range unknown {
		c.log.Info("The kind is gone, the object with it", "object", object.String())
	}

	return list, nil
}

// parse makes a resource list of a manifest, and names the objects whose kinds the API server does
// not know.
func (c *client) parse(manifest string) (kube.ResourceList, []Object, error) {
	objects, err := decodeManifest(manifest)
	if err != nil {
		return nil, nil, err
	}

	return c.resolve(objects)
}

// resolve finds the kinds of objects. It asks the API server anew before it takes one for unknown.
func (c *client) resolve(objects []*unstructured.Unstructured) (kube.ResourceList, []Object, error) {
	list, unknown, err := c.infos(objects)
	if err == nil && len(unknown) > 0 {
		c.cluster.refresh()
		list, unknown, err = c.infos(objects)
	}

	return list, unknown, err
}

func (c *client) infos(objects []*unstructured.Unstructured) (list kube.ResourceList, unknown []Object, err error) {
	for _, o := range objects {
		info, err := c.info(o)
		switch {
		case meta.IsNoMatchError(err):
			unknown = append(unknown, Object{o.GroupVersionKind(), o.GetNamespace(), o.GetName()})
		case err != nil:
			return nil, nil, fmt.Errorf("look up the kind of %s %s: %w", o.GetKind(), o.GetName(), err)
		default:
			list = append(list, info)
		}
	}

	return list, unknown, nil
}

func (c *client) info(o *unstructured.Unstructured) (*resource.Info, error) {
	mapping, err := c.cluster.mapping(o.GroupVersionKind())
	if err != nil {
		return nil, err
	}

	switch {
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(c.namespace)
	}

	rest, err := c.cluster.client(mapping.GroupVersionKind.GroupVersion())
	if err != nil {
		return nil, err
	}

	return &resource.Info{Client: rest, Mapping: mapping, Namespace: o.GetNamespace(), Name: o.GetName(), Object: o}, nil
}

// aim makes a manifest the target, after a look at all its objects: it fails, before anything is
// recorded or applied, if a kind is unknown or an object belongs to another release. Build will
// return the same list whenever Helm asks for this manifest.
func (c *client) aim(manifest string) error {
	objects, err := decodeManifest(manifest)
	if err != nil {
		return err // of the chart's making, not of the API server's
	}

	list, unknown, err := c.resolve(objects)
	if err != nil {
		return c.fail(err)
	}

	if len(unknown) > 0 {
		return c.fail(&UnknownKindError{Objects: unknown})
	}

	live := make(map[*resource.Info]*unstructured.Unstructured, len(list))

	err = c.each(list, func(info *resource.Info) error {
		object, err := c.lookUp(info)
		if object != nil {
			c.mu.Lock()
			defer c.mu.Unlock()

			live[info] = object
		}

		return err
	})
	if err != nil {
		return c.fail(err)
	}

	for _, info := range list {
		info.Client = lookedUp{info.Client}
	}

	c.target = target{manifest, list, live}

	return nil
}

// lookedUp is the client in the target's objects. Helm gets each object in turn to learn whether it
// exists, and refuses or adopts it; as aim has done that already, it is told that there is none.
type lookedUp struct{ resource.RESTClient }

func (lookedUp) Get() *rest.Request {
	return rest.NewRequestWithClient(
		&url.URL{Scheme: "http", Host: "nowhere"},
		"",
		rest.ClientContentConfig{},
		&http.Client{Transport: nothingThere{}},
	)
}

type nothingThere struct{}

func (nothingThere) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
}

// helper makes requests about an object.
func (c *client) helper(info *resource.Info) *resource.Helper {
	rest := info.Client
	if l, ok := rest.(lookedUp); ok {
		rest = l.RESTClient
	}

	return resource.NewHelper(rest, info.Mapping).WithFieldManager(kube.ManagedFieldsManager)
}

// Create makes the target's objects, or a hook's.
func (c *client) Create(list kube.ResourceList) (*kube.Result, error) {
	if len(list) > 0 && len(c.target.objects) > 0 && list[0] == c.target.objects[0] {
		return c.Update(nil, list, false)
	}

	return &kube.Result{}, c.fail(c.each(list, func(info *resource.Info) error {
		_, err := c.helper(info).Create(info.Namespace, true, info.Object)
		return err
	}))
}

// Update takes the release from the original objects to the target's.
func (c *client) Update(original, target kube.ResourceList, _ bool) (*kube.Result, error) {
	return &kube.Result{}, c.fail(c.apply(original, target)) // Helm reads the result even after an error
}

// UpdateThreeWayMerge is Update: custom resources are merged three ways in any case.
func (c *client) UpdateThreeWayMerge(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	return c.Update(original, target, force)
}

// Delete removes a hook's objects.
func (c *client) Delete(list kube.ResourceList) (*kube.Result, []error) {
	deletable := list.Filter(func(info *resource.Info) bool { return !protected(info) })
	return deleted(c.fail(c.each(deletable, func(info *resource.Info) error { return c.delete(info, nil) })))
}

// DeleteWithPropagationPolicy removes the release's objects, those of incomplete revisions
// included.
func (c *client) DeleteWithPropagationPolicy(
	list kube.ResourceList,
	_ metav1.DeletionPropagation,
) (*kube.Result, []error) {
	attempted, err := c.attempted()
	if err != nil {
		return deleted(c.fail(err))
	}

	return deleted(c.fail(c.remove(dropped(append([]kube.ResourceList{list}, attempted...), nil))))
}

func deleted(err error) (*kube.Result, []error) {
	if err != nil {
		return &kube.Result{}, []error{err}
	}

	return &kube.Result{}, nil
}

// attempted are the objects of revisions that may have been applied in part.
func (c *client) attempted() ([]kube.ResourceList, error) {
	var lists []kube.ResourceList

	for _, manifest := range c.attempts {
		list, _, err := c.parse(manifest)
		if err != nil {
			return nil, err
		}

		lists = append(lists, list)
	}

	return lists, nil
}

// GetPodList finds none: the output of hooks goes nowhere, and Helm's own needs a client that only
// its IsReachable makes.
func (c *client) GetPodList(string, metav1.ListOptions) (*corev1.PodList, error) {
	return &corev1.PodList{}, nil
}

// fail keeps the first error for the caller of the action.
func (c *client) fail(err error) error {
	if c.failure == nil {
		c.failure = err
	}

	return err
}

func objectOf(info *resource.Info) Object {
	return Object{info.Mapping.GroupVersionKind, info.Namespace, info.Name}
}
