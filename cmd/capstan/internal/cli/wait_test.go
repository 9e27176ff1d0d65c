package cli

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// answering returns a connection to an API server that gives these answers, one for each request, and the last one from
// then on.
func answering(t *testing.T, answers ...http.HandlerFunc) *Cluster {
	t.Helper()
	g := NewWithT(t)

	var requests atomic.Int64

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers[min(int(requests.Add(1)), len(answers))-1](w, r)
	}))
	t.Cleanup(server.Close)

	return connected(g, server.URL)
}

func connected(g Gomega, url string) *Cluster {
	scheme := runtime.NewScheme()
	g.Expect(v1alpha2.AddToScheme(scheme)).To(Succeed())

	mapper := meta.NewDefaultRESTMapper(nil)

	for _, t := range v1alpha2.ProviderTypes() {
		mapper.Add(t.GroupVersionKind(), meta.RESTScopeNamespace)
	}

	config := &rest.Config{Host: url, Timeout: time.Second, QPS: -1} // without throttling, as for all commands
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	g.Expect(err).NotTo(HaveOccurred())

	return &Cluster{Client: c}
}

func core() *v1alpha2.CoreProvider {
	p := &v1alpha2.CoreProvider{}
	p.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("CoreProvider"))
	p.Namespace, p.Name, p.Generation = "capi-system", "cluster-api", 2

	return p
}

func ready(w http.ResponseWriter, _ *http.Request) {
	p := core()
	p.Status.ObservedGeneration = p.Generation
	p.Status.InstalledVersion = new("v1.0.0")
	conditions.MarkTrue(p, v1alpha2.ReadyCondition, "Some", "v1.0.0 is healthy")
	list(w, *p)
}

// list answers with the core providers that there are.
func list(w http.ResponseWriter, found ...v1alpha2.CoreProvider) {
	answer := &v1alpha2.CoreProviderList{Items: found}
	answer.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("CoreProviderList"))

	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// status returns an answer as API servers give it.
func status(code int, reason metav1.StatusReason) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason,
			Code: int32(code), Message: "some text",
		})
	}
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter, _ *http.Request) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

// cutAnswer ends the connection within the answer.
func cutAnswer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"kind": "CoreP`))
}

// late answers after the client has given up.
func late(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// TestWaitSurvivesAnAPIServerThatRestarts: requests that may succeed later are repeated, with one warning.
func TestWaitSurvivesAnAPIServerThatRestarts(t *testing.T) {
	for name, failure := range map[string]http.HandlerFunc{
		"connection is lost":     cut,
		"answer is incomplete":   cutAnswer,
		"no answer":              late,
		"500":                    status(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		"503":                    status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable),
		"504":                    status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout),
		"429":                    status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests),
		"502 of a load balancer": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			c := answering(t, failure, failure, ready)

			g.Expect(c.WaitAll(t.Context(), &Options{IOStreams: streams}, []v1alpha2.Provider{core()},
				&WaitFlags{Wait: true, Timeout: time.Minute}, Ready)).To(Succeed())
			g.Expect(errOut.String()).To(MatchRegexp(
				`^Warning: read CoreProvider capi-system/cluster-api: .*; trying again\n$`), "once")
			g.Expect(out.String()).To(MatchRegexp(
				`^CoreProvider capi-system/cluster-api: v1.0.0 is healthy \(\S+s\)\n$`))
		})
	}
}

// TestWaitPrintsACauseOnce: as long as it stays the same, only what changes is printed, and not a cause that changes at
// once.
func TestWaitPrintsACauseOnce(t *testing.T) {
	g := NewWithT(t)
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	notReady := func(verdict, cause string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			p := core()
			p.Status.ObservedGeneration = p.Generation
			conditions.MarkReconciling(p, v1alpha2.ProgressingReason, "%s", verdict)
			conditions.MarkFalse(p, v1alpha2.ReadyCondition, v1alpha2.ProgressingReason,
				"%s: Deployment x: %s", verdict, cause)
			list(w, *p)
		}
	}

	c := answering(t,
		notReady("v1.0.0 is being installed", "Available: 0/1"), notReady("v1.0.0 is being installed", "Updated: 0/1"),
		notReady("v1.0.0 failed", "Available: 0/1"), ready)

	g.Expect(c.WaitAll(t.Context(), &Options{IOStreams: streams}, []v1alpha2.Provider{core()},
		&WaitFlags{Wait: true, Timeout: time.Minute}, Ready)).To(Succeed())
	g.Expect(strings.Split(out.String(), "\n")).To(HaveExactElements(
		HavePrefix("CoreProvider capi-system/cluster-api: v1.0.0 is being installed: Deployment x: Available: 0/1 ("),
		HavePrefix("CoreProvider capi-system/cluster-api: v1.0.0 failed ("),
		HavePrefix("CoreProvider capi-system/cluster-api: v1.0.0 is healthy ("), ""))
}

// TestWaitEndsWithAnError: what does not pass by itself ends waiting at once.
func TestWaitEndsWithAnError(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"403": {status(http.StatusForbidden, metav1.StatusReasonForbidden), "read CoreProvider capi-system/cluster-api: "},
		"401": {status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized), "read CoreProvider capi-system/"},
		"none": {func(w http.ResponseWriter, _ *http.Request) { list(w) },
			"CoreProvider capi-system/cluster-api: the provider was deleted in the meantime"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			streams, _, _, errOut := genericiooptions.NewTestIOStreams()

			err := answering(t, c.answer).WaitAll(t.Context(), &Options{IOStreams: streams}, []v1alpha2.Provider{core()},
				&WaitFlags{Wait: true, Timeout: time.Minute}, Ready)
			g.Expect(err).To(MatchError(HavePrefix(c.want)))
			g.Expect(errOut.String()).To(BeEmpty())
		})
	}
}

// TestWaitEndsWithItsTimeout: the error says that the API server did not answer, and all waits together warn once.
func TestWaitEndsWithItsTimeout(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listener.Close()).To(Succeed())

	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	providers := []v1alpha2.Provider{core(), core(), core()}
	flags := &WaitFlags{Wait: true, Timeout: time.Second}

	err = connected(g, "http://"+listener.Addr().String()).WaitAll(
		t.Context(), &Options{IOStreams: streams}, providers, flags, Ready)
	g.Expect(err).To(MatchError(MatchRegexp("CoreProvider capi-system/cluster-api: timed out after 1s: " +
		"read CoreProvider capi-system/cluster-api: .*connection refused; the operator continues, follow it with")))
	g.Expect(strings.Count(errOut.String(), "\n")).To(Equal(1), errOut.String())
}

// TestWaitReadsAKindAtOnce: however many providers of a kind there are in a namespace, each look is one request.
func TestWaitReadsAKindAtOnce(t *testing.T) {
	g := NewWithT(t)

	var waited []v1alpha2.Provider

	for _, name := range []string{"a", "b", "c"} {
		p := &v1alpha2.AddonProvider{}
		p.Namespace, p.Name, p.Generation = "addons", name, 2
		waited = append(waited, p)
	}

	requests := atomic.Int64{}
	look := func(observed int64, names ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)

			list := &v1alpha2.AddonProviderList{}
			list.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("AddonProviderList"))

			for _, name := range names {
				p := v1alpha2.AddonProvider{}
				p.Namespace, p.Name, p.Generation, p.Status.ObservedGeneration = "addons", name, 2, observed
				conditions.MarkTrue(&p, v1alpha2.ReadyCondition, "Some", "v1.0.0 is healthy")
				list.Items = append(list.Items, p)
			}

			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(list)
		}
	}

	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	err := answering(t, look(1, "a", "b", "c"), look(2, "a", "b")).WaitAll(
		t.Context(), &Options{IOStreams: streams}, waited, &WaitFlags{Wait: true, Timeout: time.Minute}, Ready)
	g.Expect(err).To(MatchError("AddonProvider addons/c: the provider was deleted in the meantime"))
	g.Expect(strings.Split(out.String(), "\n")).To(HaveExactElements(
		HavePrefix("AddonProvider addons/a: v1.0.0 is healthy ("), HavePrefix("AddonProvider addons/b: "), ""))
	g.Expect(requests.Load()).To(BeEquivalentTo(2))
}

// TestReadyWaitsForTheRequest: what was true before a request for a reconcile says nothing about it.
func TestReadyWaitsForTheRequest(t *testing.T) {
	g := NewWithT(t)
	p := core()
	p.Status.ObservedGeneration = p.Generation
	conditions.MarkTrue(p, v1alpha2.ReadyCondition, "Some", "v1.0.0 is healthy")
	g.Expect(Ready(p)).To(BeTrue())

	p.Annotations = map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"}
	g.Expect(Ready(p)).To(BeFalse())

	p.Status.LastHandledReconcileAt = "now"
	g.Expect(Ready(p)).To(BeTrue())

	p.Annotations[v1alpha2.ReconcileRequestAnnotation] = "later"
	p.Spec.Suspend = true
	g.Expect(Ready(p)).To(BeTrue(), "no request is handled while it is suspended")
}

// TestReadyWaitsForTheRollback: a provider whose change was given up is waited for until the rollback is healthy.
func TestReadyWaitsForTheRollback(t *testing.T) {
	g := NewWithT(t)
	p := core()
	p.Status.ObservedGeneration = p.Generation
	p.Status.History = []v1alpha2.ReleaseRevision{{Number: 3, Status: v1alpha2.RevisionDeployed, RollbackTo: 1}}
	conditions.MarkStalled(p, "Some", "v1.1.0 failed twice, given up")
	conditions.MarkFalse(p, v1alpha2.ReadyCondition, "Some", "v1.0.0 is not healthy; v1.1.0 failed twice, given up")
	g.Expect(Ready(p)).To(BeFalse())

	p.Status.History[0].Healthy = true
	g.Expect(Ready(p)).Error().To(MatchError(ContainSubstring("given up")))

	p.Status.History[0].Healthy, p.Status.History[0].Status = false, v1alpha2.RevisionFailed
	g.Expect(Ready(p)).Error().To(HaveOccurred(), "the rollback has failed")
}
