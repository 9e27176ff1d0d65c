package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/versions"
	apiobject "github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/paging"
	"github.com/capstan-project/capstan/controllers/usage"
)

// Limits bound what is read.
type Limits struct {
	// Objects is how many objects of each kind are read.
	Objects int
	// Timeout is how long reading may take in total.
	Timeout time.Duration
}

const (
	// pageSize is the number of objects in a response, some of which are as large as 100 kB.
	pageSize = 100
	// crdPageSize is smaller, because CRDs are as large as 1 MB.
	crdPageSize = 20
	// parallel is the number of requests at a time.
	parallel = 8
)

// reader reads a snapshot.
type reader struct {
	objects dynamic.Interface
	core    kubernetes.Interface
	types   map[string][]v1alpha2.ManagedType
	limits  Limits

	mu       sync.Mutex // guards the snapshot
	snapshot *Snapshot
}

// Read reads a snapshot. types are the types of objects that providers manage in addition to those of their own CRDs,
// by the provider's label. Read fails if the CRDs cannot be read; the snapshot reports anything else that cannot be
// read.
func Read(
	ctx context.Context, config *rest.Config, types map[string][]v1alpha2.ManagedType, limits Limits,
) (*Snapshot, error) {
	r := &reader{types: types, limits: limits, snapshot: &Snapshot{Time: time.Now()}}

	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // the user did not choose the versions that are read

	var err error
	if r.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}

	if r.core, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}

	limited, cancel := context.WithTimeoutCause(ctx, limits.Timeout,
		fmt.Errorf("reading took longer than %s", limits.Timeout))
	defer cancel()

	if err := r.readCRDs(limited); err != nil {
		return nil, fmt.Errorf("list CustomResourceDefinitions: %w", err)
	}

	r.readObjects(limited)
	r.readSecrets(limited)
	r.readWebhooks(limited)

	return r.snapshot, ctx.Err()
}

// readCRDs reads the CRDs of providers and of the types that they manage, without their schemas.
func (r *reader) readCRDs(ctx context.Context) error {
	managed := map[string]string{}
	list := r.objects.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).List

	for page, err := range paging.Pages(ctx, metav1.ListOptions{Limit: crdPageSize}, list) {
		if err != nil {
			return err
		}

		for i := range page.Items {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(page.Items[i].Object, crd); err != nil {
				return err
			}

			manager := r.managerOf(crd)
			if manager != "" {
				managed[crd.Name] = manager
			}

			if manager == "" && !relevant(crd) {
				continue
			}

			for v := range crd.Spec.Versions {
				crd.Spec.Versions[v].Schema = nil
			}

			r.snapshot.CRDs = append(r.snapshot.CRDs, crd)
		}
	}

	r.dropUnmanaged(managed)

	return nil
}

// managerOf returns the label of the provider that may manage the objects of a CRD; empty if there is none.
func (r *reader) managerOf(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, label := range slices.Sorted(maps.Keys(r.types)) {
		if usage.Manages(r.types[label], label, crd) {
			return label
		}
	}

	return ""
}

// dropUnmanaged records which provider manages a CRD, if that provider is installed. Otherwise the CRD is dropped,
// unless it belongs to a provider.
func (r *reader) dropUnmanaged(managed map[string]string) {
	installed := map[string]bool{}
	for _, crd := range r.snapshot.CRDs {
		installed[crd.Labels[v1alpha2.ClusterctlProviderLabel]] = true
	}

	created := createdByManagers(r.snapshot.CRDs)

	maps.DeleteFunc(managed, func(_, label string) bool { return !installed[label] })

	r.snapshot.Managed = managed
	r.snapshot.CRDs = slices.DeleteFunc(r.snapshot.CRDs, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return managed[crd.Name] == "" && (!relevant(crd) || created[crd.Name])
	})
}

// createdByManagers returns the names of the CRDs with the label of a provider that its manager has created at run
// time. Those in a group of Cluster API are left out, because a resource may leave them to another program.
func createdByManagers(all []*apiextensionsv1.CustomResourceDefinition) map[string]bool {
	labelled := map[string][]*apiextensionsv1.CustomResourceDefinition{}
	created := map[string]bool{}

	for _, crd := range all {
		if label := crd.Labels[v1alpha2.ClusterctlProviderLabel]; label != "" {
			labelled[label] = append(labelled[label], crd)
			created[crd.Name] = !inGroup(crd)
		}
	}

	for _, ofProvider := range labelled {
		for _, crd := range crds.OfProvider(ofProvider, nil) {
			created[crd.Name] = false
		}
	}

	return created
}

// readObjects reads the objects of all CRDs.
func (r *reader) readObjects(ctx context.Context) {
	core := coreContract(r.snapshot.CRDs)

	group := errgroup.Group{}
	group.SetLimit(parallel)

	for _, crd := range r.snapshot.CRDs {
		group.Go(func() error {
			r.readKind(ctx, crd, ReadVersion(crd, core))
			return nil
		})
	}

	_ = group.Wait() // errors are part of the snapshot
}

// readKind reads the objects of a CRD in a version, which is empty if none is served.
func (r *reader) readKind(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, version string) {
	if version == "" {
		r.unread(ctx, crd.Name, errors.New("no version of the CRD is served"))
		return
	}

	var objects []*unstructured.Unstructured

	list := r.objects.Resource(versions.Resource(crd, version)).List
	for page, err := range paging.Pages(ctx, metav1.ListOptions{Limit: pageSize}, list) {
		if err == nil {
			for i := range page.Items {
				Trim(&page.Items[i])
				objects = append(objects, &page.Items[i])
			}

			if len(objects) > r.limits.Objects || len(objects) == r.limits.Objects && page.GetContinue() != "" {
				err = fmt.Errorf("there are more than %d objects", r.limits.Objects)
				objects = objects[:r.limits.Objects]
			}
		}

		if err != nil {
			r.unread(ctx, crd.Name, err)
			break
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.snapshot.Objects = append(r.snapshot.Objects, objects...)
}

// unread records what could not be read.
func (r *reader) unread(ctx context.Context, name string, err error) {
	reason := apiobject.Reason("", err)
	if cause := context.Cause(ctx); cause != nil {
		reason = cause.Error()
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.snapshot.Unread = append(r.snapshot.Unread, Unread{Name: name, Reason: reason})
}
