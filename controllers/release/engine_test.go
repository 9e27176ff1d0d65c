package release_test

import (
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// replacer is a post-renderer that replaces a text.
type replacer struct{ from, to string }

func (r replacer) Render(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	text, err := manifest.Encode(objects)
	if err != nil {
		return nil, err
	}

	return manifest.Decode(strings.ReplaceAll(text, r.from, r.to))
}

func (r replacer) Digest() string { return r.from + ">" + r.to }

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var _ = Describe("The engine", func() {
	var namespace string

	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	It("applies and stores the output of the post-renderer", func(ctx SpecContext) {
		engine := newEngine("one")
		spec := specOf(namespace, "1.0.0", configMap("config", "rendered"))
		mustApply(ctx, engine, spec)
		spec.PostRenderer = replacer{"rendered", "changed"}
		Expect(observe(ctx, engine, spec).State).To(Equal(state.OutOfSync))
		mustApply(ctx, engine, spec)
		Expect(run(ctx, "helm", "get", "manifest", name, "-n", namespace)).To(ContainSubstring("changed"))
		cm := getConfigMap(ctx, namespace, "config")
		Expect(cm.Data).To(HaveKeyWithValue("key", "changed"))
	})

	It("takes over no values of an earlier revision", func(ctx SpecContext) {
		engine := newEngine("one")
		c := chartOf("1.0.0", configMap("config", "{{ .Values.level | default 404 }}"))
		mustApply(ctx, engine, newSpec(namespace, c, map[string]any{"level": "debug"}))
		mustApply(ctx, engine, newSpec(namespace, c, nil))
		cm := getConfigMap(ctx, namespace, "config")
		Expect(cm.Data).To(HaveKeyWithValue("key", "404"))
	})

	It("starts nothing with a cancelled context", func(ctx SpecContext) {
		engine := newEngine("one")
		spec := specOf(namespace, "1.0.0", configMap("config", ""))
		seen := observe(ctx, engine, spec)
		cancelled, cancel := context.WithCancel(ctx)
		cancel()

		_, err := applyObserved(cancelled, engine, spec, seen)
		Expect(err).To(MatchError(context.Canceled))
		_, err = engine.Uninstall(cancelled, releaseIn(namespace), state.Memory{}, release.UninstallOptions{
			Newest: state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1}},
		})
		Expect(err).To(MatchError(context.Canceled))
		Expect(history(ctx, namespace)).To(BeEmpty())
	})

	It("completes an action after its context is cancelled", func(ctx SpecContext) {
		cancelled, cancel := context.WithCancel(ctx)
		engine := newEngine("one", func(c *rest.Config) {
			c.Wrap(func(rt http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPost {
						cancel()
					}

					return rt.RoundTrip(r)
				})
			})
		})
		spec := specOf(namespace, "1.0.0", configMap("config", ""), serviceAccount("manager"))
		result, err := applyObserved(cancelled, engine, spec, observe(ctx, engine, spec))
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Status).To(Equal(v1alpha2.RevisionDeployed))
	})

	It("stores charts without files, and explains records that are too large for a Secret", func(ctx SpecContext) {
		noise := make([]byte, 2<<20)

		random := uint32(1)
		for i := range noise { // incompressible, and the same each time
			random = random*1664525 + 1013904223
			noise[i] = 'a' + byte(random>>24)%26
		}

		c := chartOf("1.0.0", configMap("config", ""))
		c.Files = append(c.Files, chart.File{Name: "cluster-template.yaml", Data: noise})
		mustApply(ctx, newEngine("one"), newSpec(namespace, c, nil))

		large := newSpec(namespace, chartOf("1.1.0"), map[string]any{"noise": string(noise)})
		_, err := applySpec(ctx, newEngine("one"), large)
		expectError[*storage.Error](err)
		Expect(err).To(MatchError(ContainSubstring(namespace + "/" + secretOf(2))))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed"}))

		// One that takes 93 % of a Secret is refused before CRDs are applied, too.
		engine := newEngine("one")
		spec := newSpec(namespace, chartOf("1.1.0"), map[string]any{"noise": string(noise[:1240000])})
		_, err = engine.Prepare(ctx, spec, state.Memory{}, observe(ctx, engine, spec), false)
		expectError[*storage.Error](err)
		Expect(err).To(MatchError(ContainSubstring(
			"KiB, and may take 921 KiB, 90 % of a Secret; reduce the chart, its values")))

		mustApply(ctx, engine, newSpec(namespace, chartOf("1.1.0"), map[string]any{"noise": string(noise[:1140000])}))
	})

	It("names the Secret that it could not write", func(ctx SpecContext) {
		_, err := applySpec(ctx, newEngine("one"), specOf("absent-"+namespace, "1.0.0"))
		expectError[*storage.Error](err)
		Expect(err).To(MatchError(And(ContainSubstring(secretOf(1)),
			ContainSubstring(`namespaces "absent-`+namespace+`" not found`))))
	})
})
