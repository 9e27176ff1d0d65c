package release_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// outage makes requests fail that have a method and a part of the path, before or after they take effect.
type outage struct {
	http.RoundTripper
	method, path string
	dryRun       bool // only dry runs fail, and otherwise none of them
	after        bool
	left         atomic.Int64 // requests that still fail
}

// during returns an engine with an outage of so many requests.
func during(o *outage, requests int64) *release.Engine {
	o.left.Store(requests)

	return newEngine("one", func(c *rest.Config) {
		c.Wrap(func(next http.RoundTripper) http.RoundTripper {
			o.RoundTripper = next
			return o
		})
	})
}

const lasting = 1000

func (o *outage) over() { o.left.Store(0) }

func (o *outage) RoundTrip(request *http.Request) (*http.Response, error) {
	hit := request.Method == o.method && strings.Contains(request.URL.Path, o.path) &&
		request.URL.Query().Has("dryRun") == o.dryRun
	if !hit || o.left.Add(-1) < 0 {
		return o.RoundTripper.RoundTrip(request)
	}

	if o.after {
		response, err := o.RoundTripper.RoundTrip(request)
		if err != nil {
			return nil, err
		}

		if err := response.Body.Close(); err != nil {
			return nil, err
		}
	}

	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"reason":"InternalError",` +
		`"message":"etcdserver: leader changed"}`

	return &http.Response{
		StatusCode: http.StatusInternalServerError,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(strings.NewReader(body)),
		Request:    request,
	}, nil
}

var _ = Describe("During an outage of the API server", func() {
	var namespace string

	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	first := func() release.Spec {
		return specOf(namespace, "1.0.0", configMap("kept", "1"), configMap("dropped", ""))
	}
	second := func() release.Spec { return specOf(namespace, "1.1.0", configMap("kept", "2"), configMap("added", "")) }

	It("a revision that was applied does not fail because of what it left, which is deleted later", func(ctx SpecContext) {
		mustApply(ctx, newEngine("one"), first())

		o := &outage{method: http.MethodDelete, path: "/configmaps/dropped"}
		engine := during(o, lasting)
		mustApply(ctx, engine, second())
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 deployed"}))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "added", "dropped"))

		Expect(left(ctx, namespace)).To(ConsistOf(HaveField("Name", "dropped")))

		revision := observe(ctx, engine, second()).Revision
		err := prune(ctx, engine, namespace, revision)
		Expect(expectError[*apply.RemoveError](err).Passing).To(BeTrue())
		Expect(err).To(MatchError(ContainSubstring("ConfigMap " + namespace + "/dropped could not be deleted")))

		o.over()
		Expect(prune(ctx, engine, namespace, revision)).To(Succeed())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "added"))
		Expect(left(ctx, namespace)).To(BeEmpty())
		Expect(prune(ctx, engine, namespace, revision)).To(Succeed(), "it can be repeated")
	})

	It("nothing is changed while it is unknown if a change would be accepted", func(ctx SpecContext) {
		mustApply(ctx, newEngine("one"), first())

		o := &outage{method: http.MethodPatch, path: "/configmaps/kept", dryRun: true}
		engine := during(o, lasting)
		result, err := applySpec(ctx, engine, second())
		expectError[*apply.UnavailableError](err)
		Expect(result.Revision).To(BeZero())
		Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed"}))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "dropped"))

		o.over()
		mustApply(ctx, engine, second())
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 deployed"}))
	})

	It("the next revision deletes what the one before has left", func(ctx SpecContext) {
		mustApply(ctx, newEngine("one"), first())
		mustApply(ctx, during(&outage{method: http.MethodDelete, path: "/configmaps/dropped"}, lasting), second())

		engine := newEngine("one")
		third := specOf(namespace, "1.2.0", configMap("kept", "3"))
		mustApply(ctx, engine, third)
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept"))
		Expect(left(ctx, namespace)).To(BeEmpty())
	})

	It("an upgrade does not fail because of old revisions, which are deleted later", func(ctx SpecContext) {
		o := &outage{method: http.MethodDelete, path: "/secrets/sh.helm.release.v1."}
		engine := during(o, lasting)

		upgrade := func(number int) {
			spec := specOf(namespace, fmt.Sprintf("1.%d.0", number), configMap("kept", fmt.Sprint(number)))
			spec.HistoryLimit = 2
			mustApply(ctx, engine, spec)
		}

		for number := range 3 {
			upgrade(number)
		}

		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 superseded", "3 deployed"}))

		o.over()
		upgrade(3)
		Expect(history(ctx, namespace)).To(Equal([]string{"3 superseded", "4 deployed"}))
	})

	It("an attempt is resumed, and not repeated as another revision", func(ctx SpecContext) {
		mustApply(ctx, newEngine("one"), first())

		o := &outage{method: http.MethodPatch, path: "/configmaps/kept"}
		engine := during(o, lasting)
		before := types.UID("")

		for range 3 {
			_, err := applySpec(ctx, engine, second())
			expectError[*apply.UnavailableError](err)
			Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed", "2 failed"}))

			revision := observe(ctx, engine, second()).Revision
			Expect(revision.Failure).To(Equal(v1alpha2.FailureUnavailable))
			Expect(before).To(Or(BeEmpty(), Equal(revision.UID)), "it keeps the time of the first attempt")
			before = revision.UID
		}

		o.over()
		Expect(mustApply(ctx, engine, second()).Revision).To(Equal(2))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 deployed"}))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "added"))
		Expect(run(ctx, "helm", "status", name, "-n", namespace)).To(ContainSubstring("STATUS: deployed"))
	})

	It("the first install is resumed", func(ctx SpecContext) {
		mustApply(ctx, newEngine("one"), specOf(namespace, "0.9.0", configMap("other", "")))
		_, err := uninstall(ctx, newEngine("one"), releaseIn(namespace), 1, false)
		Expect(err).NotTo(HaveOccurred())

		o := &outage{method: http.MethodPatch, path: "/configmaps"}
		engine := during(o, lasting)
		_, err = applySpec(ctx, engine, first())
		expectError[*apply.UnavailableError](err)

		o.over()
		mustApply(ctx, engine, first())
		Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed"}))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "dropped"))
	})

	It("another attempt is another revision", func(ctx SpecContext) {
		mustApply(ctx, newEngine("one"), first())

		o := &outage{method: http.MethodPatch, path: "/configmaps/kept"}
		engine := during(o, lasting)
		_, err := applySpec(ctx, engine, second())
		expectError[*apply.UnavailableError](err)

		o.over()

		third := specOf(namespace, "1.2.0", configMap("kept", "3"))
		mustApply(ctx, engine, third)
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept"), "also without what the failed one has added")
	})

	It("a rollback is resumed, and keeps its reason", func(ctx SpecContext) {
		rejectIngresses(ctx, namespace)
		mustApply(ctx, newEngine("one"), first())

		broken := specOf(namespace, "1.1.0", configMap("kept", "2"), rejected)
		_, err := applySpec(ctx, newEngine("one"), broken)
		expectError[*apply.RejectedError](err)

		o := &outage{method: http.MethodPatch, path: "/configmaps/kept"}
		engine := during(o, lasting)
		rollBack := func() error {
			options := release.RollbackOptions{Target: confirmed(namespace, 1), Reason: "the API server refused Ingress refused"}
			_, err := rollback(ctx, engine, releaseIn(namespace), options, observe(ctx, engine, broken))

			return err
		}

		expectError[*apply.UnavailableError](rollBack())
		Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed", "2 failed", "3 failed"}))

		record, err := engine.Read(ctx, releaseIn(namespace), observe(ctx, engine, broken).Revision)
		Expect(err).NotTo(HaveOccurred())
		Expect(record.Description).To(And(
			HavePrefix("Rollback to 1: the API server refused Ingress refused; the rollback failed: "),
			ContainSubstring("etcdserver: leader changed"),
		))

		o.over()
		Expect(rollBack()).To(Succeed())
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
	})

	for verb, method := range map[string]string{"creation": http.MethodPost, "change": http.MethodPut} {
		for _, after := range []bool{false, true} {
			It("the "+verb+" of a record is repeated"+map[bool]string{true: ", even if it took effect"}[after],
				func(ctx SpecContext) {
					mustApply(ctx, newEngine("one"), first())

					o := &outage{method: method, path: "/secrets", after: after}
					mustApply(ctx, during(o, 1), second())
					Expect(o.left.Load()).To(BeNumerically("<", 0), "a request has failed")
					Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 deployed"}))
				})
		}
	}

	It("an object whose creation took effect without an answer is the release's own", func(ctx SpecContext) {
		engine := during(&outage{method: http.MethodPatch, path: "/configmaps", after: true}, 1)
		_, err := applySpec(ctx, engine, first())
		expectError[*apply.UnavailableError](err)

		mustApply(ctx, engine, first())
		Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed"}))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "dropped"))
	})
})

var _ = Describe("A record that another process has written", func() {
	It("is not overwritten", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		mustApply(ctx, newEngine("one"), specOf(namespace, "1.0.0", configMap("config", "1")))

		// The other process writes the record of the new revision while its objects are applied.
		touch := func() {
			patch := []byte(`{"metadata":{"labels":{"written-by":"another"}}}`)
			_, err := client.CoreV1().Secrets(namespace).
				Patch(ctx, secretOf(2), types.MergePatchType, patch, metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		engine := newEngine("one", func(c *rest.Config) {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(request *http.Request) (*http.Response, error) {
					if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/configmaps/config") &&
						!request.URL.Query().Has("dryRun") {
						touch()
					}

					return next.RoundTrip(request)
				})
			})
		})

		spec := specOf(namespace, "1.1.0", configMap("config", "2"))
		_, err := applySpec(ctx, engine, spec)
		Expect(err).To(MatchError(storage.ErrChanged))

		record, err := client.CoreV1().Secrets(namespace).Get(ctx, secretOf(2), metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(record.Labels).To(And(
			HaveKeyWithValue("status", "pending-upgrade"), HaveKeyWithValue("written-by", "another")))
	})
})
