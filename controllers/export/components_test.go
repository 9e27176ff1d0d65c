package export

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// requests counts the requests of a ComponentsWriter by verb.
type requests map[string]int

// newWriter returns a ComponentsWriter for a cluster with these objects.
func newWriter(sent requests, objects ...client.Object) *ComponentsWriter {
	cluster := fake.NewClientBuilder().WithObjects(objects...).Build()

	return &ComponentsWriter{Client: interceptor.NewClient(cluster, interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			sent["get"]++
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			sent["list"]++
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			sent["create"]++
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			sent["delete"]++
			return c.Delete(ctx, o, opts...)
		},
	})}
}

// written returns the ConfigMap of a version as a ComponentsWriter has written it, with a change.
func written(version, components string, change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm, err := newConfigMap(newProvider(v1alpha2.InfrastructureProviderType, "aws"), newBundle(version, components))
	if err != nil {
		panic(err)
	}

	if change != nil {
		change(cm)
	}

	return cm
}

// outcome is what Write does about an existing ConfigMap.
type outcome struct {
	// kept is set if it stays, and refused if that is an error.
	kept, refused bool
	requests      requests
}

func TestWrite(t *testing.T) {
	var (
		created  = outcome{requests: requests{"get": 1, "create": 1, "list": 1}}
		replaced = outcome{requests: requests{"get": 1, "delete": 1, "create": 1, "list": 1}}
		kept     = outcome{kept: true, requests: requests{"get": 1, "list": 1}}
		refused  = outcome{kept: true, refused: true, requests: requests{"get": 1}}
	)

	for name, c := range map[string]struct {
		existing *corev1.ConfigMap
		want     outcome
	}{
		"nothing exists":     {nil, created},
		"the same content":   {written("v1.1.0", "new", nil), kept},
		"of earlier content": {written("v1.1.0", "old", nil), replaced},
		"of a resource before": {written("v1.1.0", "old", func(cm *corev1.ConfigMap) {
			cm.OwnerReferences[0].UID = "uid-0"
		}), replaced},
		"with additional marks": {written("v1.1.0", "new", func(cm *corev1.ConfigMap) {
			cm.Labels["more"] = "yes"
			cm.Annotations["more"] = "yes"
		}), kept},
		"a user's": {written("v1.1.0", "mine", func(cm *corev1.ConfigMap) {
			cm.Labels, cm.OwnerReferences = nil, nil
		}), refused},
		"a user's copy of another version": {written("v1.1.0", "mine", func(cm *corev1.ConfigMap) {
			cm.OwnerReferences = nil
			cm.Labels[v1alpha2.ConfigMapVersionLabel] = "v1.0.0"
		}), refused},
		"that of cluster-api-operator": {written("v1.1.0", "old", func(cm *corev1.ConfigMap) {
			delete(cm.Labels, v1alpha2.ManagedByLabel)
		}), kept},
		"a copy without owner": {written("v1.1.0", "old", func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil }), kept},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			sent, expected := requests{}, written("v1.1.0", "new", nil)
			w := newWriter(sent)

			if c.existing != nil {
				w = newWriter(sent, c.existing)
			}

			if c.want.kept {
				expected = c.existing
			}

			p := newProvider(v1alpha2.InfrastructureProviderType, "aws")
			err := w.Write(t.Context(), p, newBundle("v1.1.0", "new"))

			g.Expect(sent).To(Equal(c.want.requests))

			if c.want.refused {
				g.Expect(err).To(BeAssignableToTypeOf(&RefusedError{}))
				g.Expect(err).To(MatchError(ContainSubstring("something else has created it; rename or delete it")))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}

			got := &corev1.ConfigMap{}
			g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(expected), got)).To(Succeed())
			g.Expect(got.Data).To(Equal(expected.Data))
			g.Expect(got.Labels).To(Equal(expected.Labels))
			g.Expect(got.OwnerReferences).To(Equal(expected.OwnerReferences))
		})
	}
}

// Readers in the cluster need the versions that the release can return to, and no others.
func TestOldVersionsAreDeleted(t *testing.T) {
	g := NewWithT(t)

	p := newProvider(v1alpha2.InfrastructureProviderType, "aws")
	p.GetStatus().InstalledVersion = new("v1.3.0")
	p.GetStatus().History = []v1alpha2.ReleaseRevision{{Version: "v1.2.0"}}

	w := newWriter(requests{},
		written("v1.1.0", "", nil),
		written("v1.2.0", "", nil),
		written("v1.3.0", "", nil),
		written("v1.0.0", "", func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil }),
		written("v0.9.0", "", func(cm *corev1.ConfigMap) { delete(cm.Labels, v1alpha2.ManagedByLabel) }),
		written("v0.8.0", "", func(cm *corev1.ConfigMap) { cm.Labels[v1alpha2.ConfigMapTypeLabel] = "bootstrap" }),
		written("v0.7.0", "", func(cm *corev1.ConfigMap) { cm.Namespace = "other" }),
	)
	g.Expect(w.Write(t.Context(), p, newBundle("v1.4.0", "new"))).To(Succeed())

	left := &corev1.ConfigMapList{}
	g.Expect(w.Client.List(t.Context(), left)).To(Succeed())

	versions := map[string]bool{}
	for _, cm := range left.Items {
		versions[cm.Labels[v1alpha2.ConfigMapVersionLabel]] = true
	}

	g.Expect(slices.Sorted(maps.Keys(versions))).
		To(Equal([]string{"v0.7.0", "v0.8.0", "v0.9.0", "v1.0.0", "v1.2.0", "v1.3.0", "v1.4.0"}))
}

func TestErrorsOfTheAPIServer(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}

	for name, c := range map[string]struct {
		err     error
		refused bool
	}{
		"an exceeded quota":           {apierrors.NewForbidden(resource, "", errors.New("exceeded quota")), true},
		"an admission policy":         {apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "", nil), true},
		"a request that is too large": {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		"an API server that is busy":  {apierrors.NewTooManyRequestsError("later"), false},
		"another writer":              {apierrors.NewAlreadyExists(resource, ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := &ComponentsWriter{Client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return c.err },
			}).Build()}

			err := w.Write(t.Context(), newProvider(v1alpha2.InfrastructureProviderType, "aws"), newBundle("v1.0.0", ""))
			g.Expect(errors.As(err, new(*RefusedError))).To(Equal(c.refused), "%v", err)
			g.Expect(err).To(MatchError(ContainSubstring(c.err.Error())))
		})
	}
}
