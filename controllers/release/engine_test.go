package release_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/release"
)

// replacer is a post-renderer.
type replacer struct{ from, to string }

func (r replacer) Render(manifest []byte) ([]byte, error) {
	return bytes.ReplaceAll(manifest, []byte(r.from), []byte(r.to)), nil
}

func (r replacer) Digest() string { return r.from + ">" + r.to }

// roundTripper is a function that is a connection.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var _ = Describe("The engine", func() {
	var namespace string

	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	It("needs a holder", func() {
		_, err := release.NewEngine(cluster.Config(), release.Options{})
		Expect(err).To(MatchError(ContainSubstring("no holder")))
	})

	It("applies and records what the post-renderer made", func(ctx SpecContext) {
		engine := newEngine("one")
		d := desired(namespace, chartOf("1.0.0", configMap("config", "rendered")), nil)
		mustApply(ctx, engine, d)
		d.PostRenderer = replacer{"rendered", "changed"}
		Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.OutOfSync))
		mustApply(ctx, engine, d)
		Expect(run(ctx, "helm", "get", "manifest", name, "-n", namespace)).To(ContainSubstring("changed"))
		cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "config", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(cm.Data).To(HaveKeyWithValue("key", "changed"))
	})

	It("takes no values over from an earlier revision", func(ctx SpecContext) {
		engine := newEngine("one")
		c := chartOf("1.0.0", configMap("config", "{{ .Values.level | default 404 }}"))
		mustApply(ctx, engine, desired(namespace, c, map[string]any{"level": "debug"}))
		mustApply(ctx, engine, desired(namespace, c, nil))
		cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "config", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(cm.Data).To(HaveKeyWithValue("key", "404"))
	})

	It("runs one action on a release at a time, and says that it does", func(ctx SpecContext) {
		reached, proceed := make(chan struct{}), make(chan struct{})
		engine := newEngine("one", func(c *rest.Config) {
			c.Wrap(func(rt http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPost {
						reached <- struct{}{}

						<-proceed
					}

					return rt.RoundTrip(r)
				})
			})
		})
		d := desired(namespace, chartOf("1.0.0"), nil) // its record is the only write by POST
		seen := stateOf(ctx, engine, d)
		done := make(chan error)

		go func() {
			_, err := engine.Apply(ctx, d, seen)
			done <- err
		}()

		Eventually(reached).Should(Receive())

		var pending *release.PendingError

		Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.Pending))
		_, err := engine.Apply(ctx, d, seen)
		Expect(errors.As(err, &pending)).To(BeTrue(), "%v", err)
		_, err = engine.Uninstall(ctx, namespace, name)
		Expect(errors.As(err, &pending)).To(BeTrue(), "%v", err)

		close(proceed)
		Eventually(done).Should(Receive(BeNil()))
		Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.InSync))
	})

	It("begins nothing when it is too late", func(ctx SpecContext) {
		engine := newEngine("one")
		d := desired(namespace, chartOf("1.0.0", configMap("config", "")), nil)
		seen := stateOf(ctx, engine, d)
		late, cancel := context.WithCancel(ctx)
		cancel()

		_, err := engine.Apply(late, d, seen)
		Expect(err).To(MatchError(context.Canceled))
		_, err = engine.Uninstall(late, namespace, name)
		Expect(err).To(MatchError(context.Canceled))
		Expect(history(ctx, namespace)).To(BeEmpty())
	})

	It("does not finish half what it has begun", func(ctx SpecContext) {
		late, cancel := context.WithCancel(ctx)
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
		d := desired(namespace, chartOf("1.0.0", configMap("config", ""), serviceAccount("manager")), nil)
		result, err := engine.Apply(late, d, stateOf(ctx, engine, d))
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Status).To(Equal(release.StatusDeployed))
	})

	It("keeps what nobody reads out of the records, and says so if they still do not fit a Secret", func(ctx SpecContext) {
		noise := make([]byte, 2<<20)

		state := uint32(1)
		for i := range noise { // incompressible, and the same each time
			state = state*1664525 + 1013904223
			noise[i] = 'a' + byte(state>>24)%26
		}

		c := chartOf("1.0.0", configMap("config", ""))
		c.Files = append(c.Files, chart.File{Name: "cluster-template.yaml", Data: noise})
		mustApply(ctx, newEngine("one"), desired(namespace, c, nil))

		_, err := apply(ctx, newEngine("one"), desired(namespace, chartOf("1.1.0"), map[string]any{"noise": string(noise)}))

		var storage *release.StorageError
		Expect(errors.As(err, &storage)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(namespace + "/" + secretOf(2))))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed"}))
	})

	It("names the record that it could not write", func(ctx SpecContext) {
		_, err := apply(ctx, newEngine("one"), desired("absent-"+namespace, chartOf("1.0.0"), nil))

		var storage *release.StorageError
		Expect(errors.As(err, &storage)).To(BeTrue(), "%v", err)
		Expect(
			err,
		).To(MatchError(And(ContainSubstring(secretOf(1)), ContainSubstring(`namespaces "absent-`+namespace+`" not found`))))
	})
})
