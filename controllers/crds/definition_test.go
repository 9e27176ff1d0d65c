package crds

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/test/testproviders"
)

// TestKnownFieldsKeepNoFile: what is remembered of a CRD does not keep the memory of its file, of which it is a
// small part.
func TestKnownFieldsKeepNoFile(t *testing.T) {
	g := NewWithT(t)

	const size = 32 << 20

	text, err := yaml.Marshal(definitionOf("apple", "v1"))
	g.Expect(err).NotTo(HaveOccurred())

	f := chart.File{Name: "crds/apples.example.com.yaml", Data: append(text, bytes.Repeat([]byte("#"), size)...)}
	f.Data = append(f.Data, '\n')

	before := heapInUse()
	fields, err := NewApplier(Clients{}).appliedFields(newDefinition(f, "target"), Request{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pointers(fields)).To(ContainElements("/spec/group", "/spec/versions"))

	g.Eventually(heapInUse).Should(BeNumerically("<", before+size/2))

	runtime.KeepAlive(f)
	runtime.KeepAlive(fields)
}

func TestPrepareAnOldAPIVersion(t *testing.T) {
	f := chart.File{Name: "crds/apples.example.com.yaml", Data: []byte("apiVersion: apiextensions.k8s.io/v1beta1\n")}
	_, err := newDefinition(f, "target").prepare(Request{}, nil)
	NewWithT(t).Expect(err).To(MatchError("CustomResourceDefinition apples.example.com was refused: its API version " +
		`"apiextensions.k8s.io/v1beta1" is no longer served; choose a version of the provider that has ` +
		"apiextensions.k8s.io/v1"))
}

// TestPrepareAnExportedCRD: a CRD can be published as kubectl prints it.
func TestPrepareAnExportedCRD(t *testing.T) {
	g := NewWithT(t)

	f := chart.File{Name: "crds/apples.example.com.yaml", Data: []byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: apples.example.com
  creationTimestamp: "2025-02-03T04:05:06Z"
  generation: 2
  labels: {own: kept}
  managedFields: [{manager: a}]
  ownerReferences: [{apiVersion: v1, kind: Node, name: a, uid: b}]
  resourceVersion: "48151623"
  uid: 2b0f7a52-77ab-4a0e-93a5-3f1b7f6a0c11
status: {storedVersions: [v1]}
`)}

	object, err := newDefinition(f, "target").prepare(Request{}, nil)
	g.Expect(err).NotTo(HaveOccurred())

	metadata := object.Object["metadata"].(map[string]any)
	g.Expect(slices.Sorted(maps.Keys(metadata))).To(Equal([]string{"annotations", "labels", "name"}))
	g.Expect(object.Object).NotTo(HaveKey("status"))
}

// TestParse: CRDs of real providers, and whatever else the library accepts, have the result of the library.
func TestParse(t *testing.T) {
	files := map[string][]byte{
		"flow style":     []byte("{metadata: {name: x}, spec: {group: example.com}}\n"),
		"a large number": []byte("spec:\n  preserveUnknownFields: true\nmetadata:\n  generation: 9223372036854775807\n"),
	}

	published, err := testproviders.Glob(t, "*/*/*-components.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	for _, path := range published {
		text, err := os.ReadFile(path)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		for i, document := range bytes.Split(text, []byte("\n---\n")) {
			if bytes.Contains(document, []byte("kind: CustomResourceDefinition\n")) && !bytes.Contains(document, []byte("${")) {
				files[fmt.Sprint(path, i)] = append(document, '\n')
			}
		}
	}

	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			want := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(yaml.Unmarshal(text, want)).To(Succeed())

			got, err := newDefinition(chart.File{Data: text}, "target").parse()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(want))
		})
	}
}

// TestParseAnInvalidCRD: the message has no types of Go.
func TestParseAnInvalidCRD(t *testing.T) {
	f := chart.File{Name: "crds/apples.example.com.yaml", Data: []byte("spec:\n  names: {kind: 1}\n")}
	_, err := newDefinition(f, "target").parse()
	NewWithT(t).Expect(err).To(MatchError("CustomResourceDefinition apples.example.com was refused: its field " +
		"spec.names.kind must not be a JSON number; choose a version of the provider in which it is valid"))
}

func TestDefinedKinds(t *testing.T) {
	g := NewWithT(t)

	text, err := yaml.Marshal(definitionOf("apple", "v1"))
	g.Expect(err).NotTo(HaveOccurred())

	inFlow, err := yaml.YAMLToJSON(bytes.ReplaceAll(text, []byte("apple"), []byte("pear")))
	g.Expect(err).NotTo(HaveOccurred())

	kinds := DefinedKinds([]chart.File{{Data: text}, {Data: inFlow}, {Data: []byte("a: b: c")}})
	g.Expect(kinds).To(Equal(map[schema.GroupKind]DefinedKind{
		{Group: "example.com", Kind: "apple"}: {
			Resource: schema.GroupResource{Group: "example.com", Resource: "apples"}, Namespaced: true,
		},
		{Group: "example.com", Kind: "pear"}: {
			Resource: schema.GroupResource{Group: "example.com", Resource: "pears"}, Namespaced: true,
		},
	}))
}

// BenchmarkDefinedKinds measures finding the kinds that the CRDs of core define.
func BenchmarkDefinedKinds(b *testing.B) {
	files, size := coreCRDs(b)
	b.SetBytes(size)
	b.ReportAllocs()

	for b.Loop() {
		DefinedKinds(files)
	}
}

// heapInUse returns the bytes of the objects that the garbage collector finds in use.
// TestWithoutDescriptions: what the API server refuses with its descriptions is refused without them, too.
func TestWithoutDescriptions(t *testing.T) {
	g := NewWithT(t)

	const crd = `
metadata: {name: apples.example.com, annotations: {description: kept}}
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        DESCRIPTION
        type: object
        properties:
          description: {type: string, DESCRIPTION, default: {description: kept}}
          list: {type: array, items: {type: object, properties: {a: {type: string, DESCRIPTION}}}}
          map: {type: object, additionalProperties: {type: string, DESCRIPTION}}
          open: {type: object, additionalProperties: true}
          invalid: {type: object, description: 1, allOf: [{description: kept}], not: {description: kept}}
          absent:
  - name: v2
    schema: {}
`

	parse := func(description string) (object map[string]any) {
		g.Expect(yaml.Unmarshal([]byte(strings.NewReplacer(
			"        DESCRIPTION\n", description, ", DESCRIPTION", strings.ReplaceAll(description, "        ", ", "),
		).Replace(crd)), &object)).To(Succeed())

		return object
	}

	described := parse("        description: an apple\n")
	g.Expect(withoutDescriptions(described)).To(Equal(parse("")))
	g.Expect(described).To(Equal(parse("        description: an apple\n")), "it is a copy")

	for _, crd := range []map[string]any{{}, {"spec": int64(1)}, {"spec": map[string]any{"versions": []any{int64(1)}}}} {
		g.Expect(withoutDescriptions(crd)).To(Equal(crd))
	}
}

func heapInUse() uint64 {
	runtime.GC()

	var stats runtime.MemStats

	runtime.ReadMemStats(&stats)

	return stats.HeapAlloc
}

// BenchmarkAppliedFields measures what the operator does with each CRD of core when it first sees the chart.
func BenchmarkAppliedFields(b *testing.B) {
	files, size := coreCRDs(b)
	b.SetBytes(size)
	b.ReportAllocs()

	for b.Loop() {
		applier := NewApplier(Clients{})
		for _, f := range files {
			if _, err := applier.appliedFields(newDefinition(f, "target"), Request{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkParse measures what the operator does with each CRD of core that an upgrade changes.
func BenchmarkParse(b *testing.B) {
	files, size := coreCRDs(b)
	b.SetBytes(size)
	b.ReportAllocs()

	for b.Loop() {
		for _, f := range files {
			if _, err := newDefinition(f, "target").parse(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// coreCRDs returns the CRDs of the newest core, or generated ones, and their size in bytes.
func coreCRDs(b testing.TB) (files []chart.File, size int64) {
	b.Helper()

	folder, label := os.Getenv(testproviders.Variable), "cluster-api"
	if folder == "" {
		folder, label = b.TempDir(), "infrastructure-large"
		if err := testproviders.WriteLarge(folder); err != nil {
			b.Fatal(err)
		}
	}

	directory, err := source.NewDirectory(filepath.Join(folder, label))
	if err != nil {
		b.Fatal(err)
	}

	releases, err := directory.Versions(b.Context())
	if err != nil {
		b.Fatal(err)
	}

	published, err := directory.Fetch(b.Context(), releases[0])
	if err != nil {
		b.Fatal(err)
	}

	built, err := chartgen.Build(published.Bundle)
	if err != nil {
		b.Fatal(fmt.Errorf("build the chart of %s: %w", label, err))
	}

	for _, f := range built.CRDs {
		size += int64(len(f.Data))
	}

	return built.CRDs, size
}
