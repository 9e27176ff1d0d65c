package plan

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/export"
	"github.com/capstan-project/capstan/test/fakesource"
)

// componentsKey is the key of the ConfigMap with the components of publishCore's resource.
var componentsKey = client.ObjectKey{Namespace: "capi-system", Name: "core-cluster-api-v1.0.0"}

// publishCore starts a server with a version of core, and returns a resource that uses it.
func publishCore(t *testing.T) (*fakesource.Server, *v1alpha2.CoreProvider) {
	t.Helper()
	g := NewWithT(t)

	server := &fakesource.Server{}
	folder := filepath.Join(samples, "cluster-api", "v1.0.0")
	g.Expect(server.PublishFolder("owner/core", "v1.0.0", folder)).To(Succeed())
	g.Expect(server.Start()).To(Succeed())
	t.Cleanup(func() { _ = server.Stop() })

	p := &v1alpha2.CoreProvider{
		ObjectMeta: metav1.ObjectMeta{Namespace: componentsKey.Namespace, Name: v1alpha2.CoreProviderName, UID: "uid"},
	}
	p.Spec.Version = "v1.0.0"
	p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{HTTP: server.URL() + "/plain/owner/core"}

	return server, p
}

// writingPlanner returns a planner of an operator that has just started, and that writes components into ConfigMaps.
func writingPlanner(c client.Client) *Planner {
	planner := newPlanner(c)
	planner.Charts.Components = &export.ComponentsWriter{Client: c}
	planner.Sources.LabeledConfigMaps = true

	return planner
}

// reconcile finds and saves the chart of a resource.
func reconcile(
	t *testing.T, planner *Planner, c client.Client, p v1alpha2.Provider, refresh bool,
) (*Chart, Missed, error) {
	t.Helper()

	planned, err := planner.Plan(t.Context(), Request{Provider: p, Scope: c, Refresh: refresh})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	missed, err := planner.Charts.Save(t.Context(), p, planned.Chart)
	if err == nil {
		status := p.GetStatus()
		status.StoredCharts = planned.Chart.Records(status)
		status.Chart = planned.Chart.Status(status.Chart)
	}

	return planned.Chart, missed, err
}

func TestComponentsAreWrittenWhenTheyAreFetched(t *testing.T) {
	g := NewWithT(t)
	server, p := publishCore(t)
	c := writableClient()
	cm := &corev1.ConfigMap{}

	_, missed, err := reconcile(t, writingPlanner(c), c, p, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(missed).To(BeZero())
	g.Expect(c.Get(t.Context(), componentsKey, cm)).To(Succeed())
	g.Expect(cm.Data["components"]).To(ContainSubstring("kind: Deployment"))

	// Nothing is fetched for the ConfigMap alone.
	g.Expect(c.Delete(t.Context(), cm)).To(Succeed())

	requests := len(server.Requests("/"))
	_, _, err = reconcile(t, writingPlanner(c), c, p, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.Requests("/")).To(HaveLen(requests))
	g.Expect(apierrors.IsNotFound(c.Get(t.Context(), componentsKey, cm))).To(BeTrue())

	_, _, err = reconcile(t, writingPlanner(c), c, p, true)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Get(t.Context(), componentsKey, cm)).To(Succeed(), "on request it is fetched and written again")
}

func TestComponentsAreNotWrittenUnasked(t *testing.T) {
	g := NewWithT(t)
	_, p := publishCore(t)
	c := writableClient()
	install(t, c, p)
	g.Expect(apierrors.IsNotFound(c.Get(t.Context(), componentsKey, &corev1.ConfigMap{}))).To(BeTrue())
}

// A recorded chart is not fetched again, so it is not recorded before its components are written.
func TestComponentsAreWrittenLaterIfTheAPIServerIsBusy(t *testing.T) {
	for name, restart := range map[string]bool{"by the same operator": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server, p := publishCore(t)
			busy := true

			c := interceptor.NewClient(writableClient().(client.WithWatch), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					if busy && o.GetName() == componentsKey.Name {
						return apierrors.NewTooManyRequestsError("busy")
					}

					return c.Create(ctx, o, opts...)
				},
			})

			planner := writingPlanner(c)
			_, _, err := reconcile(t, planner, c, p, false)
			g.Expect(err).To(BeAssignableToTypeOf(&StoreError{}))
			g.Expect(err).To(MatchError(ContainSubstring("busy")))

			busy = false
			requests := len(server.Requests("/"))

			if restart {
				planner = writingPlanner(c)
			}

			_, missed, err := reconcile(t, planner, c, p, false)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(missed).To(BeZero())
			g.Expect(c.Get(t.Context(), componentsKey, &corev1.ConfigMap{})).To(Succeed())

			if !restart {
				g.Expect(server.Requests("/")).To(HaveLen(requests), "it remembers what it has fetched")
			}
		})
	}
}

func TestAnotherConfigMapOfThisNameDoesNotAffectTheProvider(t *testing.T) {
	g := NewWithT(t)
	_, p := publishCore(t)
	c := writableClient()
	mine := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: componentsKey.Namespace, Name: componentsKey.Name},
		Data:       map[string]string{"mine": "yes"},
	}
	g.Expect(c.Create(t.Context(), mine)).To(Succeed())

	found, missed, err := reconcile(t, writingPlanner(c), c, p, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(errors.As(missed.Components, new(*export.RefusedError))).To(BeTrue())

	g.Expect(c.Get(t.Context(), componentsKey, mine)).To(Succeed())
	g.Expect(mine.Data).To(Equal(map[string]string{"mine": "yes"}))

	_, err = (&store.Cluster{Client: c}).Get(t.Context(), found.key)
	g.Expect(err).NotTo(HaveOccurred(), "the chart is stored")
}

// A copy of the ConfigMap is a source, which gives the same chart in another cluster.
func TestComponentsGiveTheSameChartInAnotherCluster(t *testing.T) {
	g := NewWithT(t)
	_, p := publishCore(t)
	c := writableClient()
	cm := &corev1.ConfigMap{}

	fetched, _, err := reconcile(t, writingPlanner(c), c, p, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Get(t.Context(), componentsKey, cm)).To(Succeed())

	for name, fetchConfig := range map[string]*v1alpha2.FetchConfiguration{
		"selected": {Selector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha2.ConfigMapTypeLabel: "core"}}},
		"labeled":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			isolated := writableClient()
			same := p.DeepCopy()
			same.Spec.FetchConfig = fetchConfig
			*same.GetStatus() = v1alpha2.ProviderStatus{}

			copied := cm.DeepCopy()
			copied.Name, copied.ResourceVersion, copied.OwnerReferences = "copied", "", nil
			g.Expect(isolated.Create(t.Context(), copied)).To(Succeed())

			built, missed, err := reconcile(t, writingPlanner(isolated), isolated, same, false)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(missed).To(BeZero())
			g.Expect(built.annotation(chartgen.AnnotationSource)).To(Equal("configmap"))
			g.Expect(withoutSource(t, built.Chart)).To(Equal(withoutSource(t, fetched.Chart)))

			all := &corev1.ConfigMapList{}
			g.Expect(isolated.List(t.Context(), all, client.HasLabels{v1alpha2.ConfigMapVersionLabel})).To(Succeed())
			g.Expect(all.Items).To(HaveLen(1), "a source in a ConfigMap needs no copy")
		})
	}
}

// withoutSource returns a chart without the annotation that says where it comes from.
func withoutSource(t *testing.T, c *chart.Chart) *chart.Chart {
	t.Helper()

	metadata := c.Metadata
	metadata.Annotations = maps.Clone(metadata.Annotations)
	delete(metadata.Annotations, chartgen.AnnotationSource)

	files := slices.DeleteFunc(slices.Clone(c.Files), func(f chart.File) bool { return f.Name == "Chart.yaml" })
	same, err := chart.New(metadata, append(files, c.CRDs...))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return same
}
