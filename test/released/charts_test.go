package released_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/chartgen/supply/mirror"
	"github.com/capstan-project/capstan/chartgen/supply/store"
)

// components are those of the provider, with what a chart has.
const components = `
apiVersion: v1
kind: Namespace
metadata: {name: tiny-system}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tinies.infrastructure.cluster.x-k8s.io, labels: {cluster.x-k8s.io/v1beta2: v1}}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: Tiny, plural: tinies}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: issuer, namespace: tiny-system}
spec: {selfSigned: {}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: tiny-system}
spec:
  selector: {matchLabels: {app: tiny}}
  template:
    metadata: {labels: {app: tiny}}
    spec:
      containers:
      - {name: manager, image: "example.com/tiny:v1", args: ["--region=${REGION}", "--level=${LEVEL:=info}"]}
`

const metadata = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n" +
	"releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]\n"

// buildChart returns the provider's chart.
func buildChart(t *testing.T) *chart.Chart {
	t.Helper()

	built, err := chartgen.Build(&bundle.Bundle{
		Provider:   bundle.Provider{Type: "InfrastructureProvider", Name: "tiny", Label: "infrastructure-tiny"},
		Version:    "v1.0.0",
		Source:     "configmap",
		Components: []byte(components),
		Metadata:   []byte(metadata),
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return built
}

// checkChart checks that a chart is that of the provider, and renders it.
func checkChart(t *testing.T, c *chart.Chart) {
	t.Helper()
	g := NewWithT(t)

	g.Expect(c.Metadata.Annotations).To(And(
		HaveKeyWithValue(chartgen.AnnotationProviderName, "tiny"),
		HaveKeyWithValue(chartgen.AnnotationProviderType, "InfrastructureProvider"),
		HaveKeyWithValue(chartgen.AnnotationContract, "v1beta2"),
		HaveKeyWithValue(chartgen.AnnotationSource, "configmap"),
		HaveKeyWithValue(chartgen.AnnotationDefaultNamespace, "tiny-system"),
		HaveKeyWithValue(chartgen.AnnotationRequiredKinds, "Issuer.v1.cert-manager.io"),
		HaveKeyWithValue(chartgen.AnnotationContentID, Not(BeEmpty())),
	))

	manifest, err := render.Manifest(c, "tiny-system", map[string]any{
		"variables":   map[string]any{"REGION": "north"},
		"deployments": map[string]any{"manager": map[string]any{"replicas": 3}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifest).To(And(
		ContainSubstring("--region=north"), ContainSubstring("--level=info"), ContainSubstring("replicas: 3"),
		ContainSubstring("kind: Issuer")))
}

// key is that of the stored chart.
var key = store.Key{Namespace: "tiny-system", Provider: "infrastructure-tiny", Version: "v1.0.0", ContentID: "1-tiny"}

// writeCharts stores the chart in the cluster.
func writeCharts(t *testing.T) []byte {
	t.Helper()
	g := NewWithT(t)
	c := fake.NewClientBuilder().Build()

	for _, contentID := range []string{key.ContentID, "sha256:tiny"} {
		stored := key
		stored.ContentID = contentID

		_, err := (&store.Cluster{Client: c}).Put(t.Context(), stored, buildChart(t))
		g.Expect(err).NotTo(HaveOccurred())
	}

	list := &corev1.ConfigMapList{}
	g.Expect(c.List(t.Context(), list)).To(Succeed())

	objects := make([]client.Object, 0, len(list.Items))
	for i := range list.Items {
		list.Items[i].APIVersion, list.Items[i].Kind = "v1", "ConfigMap"
		objects = append(objects, &list.Items[i])
	}

	return marshal(t, objects...)
}

func readCharts(t *testing.T, files map[string][]byte) {
	t.Helper()
	g := NewWithT(t)
	charts := &store.Cluster{Client: fake.NewFakeClient(unmarshal[corev1.ConfigMap](t, files[chartsFile])...)}

	stored, err := charts.Get(t.Context(), key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stored.Prebuilt).To(BeFalse())
	checkChart(t, stored.Chart)

	found, err := charts.Find(t.Context(), store.FindOptions{
		Namespace: key.Namespace, Provider: key.Provider, Version: key.Version, Digest: stored.Digest,
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Digest).To(Equal(stored.Digest))

	fetched := key
	fetched.ContentID = "sha256:tiny"

	stored, err = charts.Get(t.Context(), fetched)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stored.Prebuilt).To(BeTrue())
}

// writeMirror writes an archive of `capstan mirror` with the chart.
func writeMirror(t *testing.T) []byte {
	t.Helper()
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), mirrorFile)

	item, err := mirror.NewChart(t.Context(), buildChart(t))
	g.Expect(err).NotTo(HaveOccurred())
	archive, err := mirror.CreateArchive(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mirror.Copy(t.Context(), []*mirror.Item{item}, archive, mirror.Options{Parallel: 1, Observer: silent{}})).
		To(Succeed())
	g.Expect(archive.Close(t.Context())).To(Succeed())

	data, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())

	return data
}

func readMirror(t *testing.T, files map[string][]byte) {
	t.Helper()
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), mirrorFile)
	g.Expect(os.WriteFile(file, files[mirrorFile], 0o600)).To(Succeed())

	items, err := mirror.OpenArchive(t.Context(), file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(items).To(ConsistOf(And(
		HaveField("Name", "charts/infrastructure-tiny:1.0.0"), WithTransform((*mirror.Item).IsChart, BeTrue()))))

	// The archive is complete: all of it can be copied.
	copied, err := mirror.CreateArchive(filepath.Join(t.TempDir(), mirrorFile))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mirror.Copy(t.Context(), items, copied, mirror.Options{Parallel: 1, Observer: silent{}})).To(Succeed())
	g.Expect(copied.Close(t.Context())).To(Succeed())
}

// silent observes nothing.
type silent struct{}

func (silent) Copied(*mirror.Item, int64)           {}
func (silent) Skipped(*mirror.Item, int64)          {}
func (silent) Finished(*mirror.Item, mirror.Result) {}

// marshal returns objects as YAML.
func marshal(t *testing.T, objects ...client.Object) []byte {
	t.Helper()

	var all []byte

	for i, object := range objects {
		object.SetManagedFields(nil)

		data, err := yaml.Marshal(object)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		if i > 0 {
			all = append(all, "---\n"...)
		}

		all = append(all, data...)
	}

	return all
}
