package clusters_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/clusters"
)

// configMaps are what is listed in remote clusters here.
var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// discovery is the media type of a list of APIs with their resources.
const discovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// elements returns the text of many elements of a list.
func elements(element string, count int) string {
	return strings.Repeat(element+",", count-1) + element
}

// answers is an API server that answers each path with a text of a media type. What begins with a number has that
// status.
func answers(t *testing.T, mediaType string, texts map[string]string) string {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, known := texts[r.URL.Path]

		w.Header().Set("Content-Type", mediaType)

		switch {
		case known:
		case r.URL.Path == "/api", r.URL.Path == "/apis":
			w.Header().Set("Content-Type", discovery)

			text = `{"items":[{"metadata":{"name":""},"versions":[{"version":"v1"}]}]}`
		case r.URL.Path == "/api/v1/namespaces/kube-system":
			w.Header().Set("Content-Type", "application/json")

			text = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"there"}}`
		default:
			http.NotFound(w, r)
			return
		}

		if status, rest, found := strings.Cut(text, " "); found {
			if code, err := strconv.Atoi(status); err == nil {
				w.WriteHeader(code)

				text = rest
			}
		}

		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)

	return server.URL
}

// TestResponsesAreLimited: what an API server answers is counted before it is decoded, by any client.
func TestResponsesAreLimited(t *testing.T) {
	const (
		many      = 5_000_000
		identity  = "/api/v1/namespaces/kube-system"
		listed    = "/api/v1/configmaps"
		tooMany   = "sends a response that has more than 100000 values"
		namespace = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"there",%s}}`
	)

	identify := func(context.Context, *clusters.Target) error { return nil }
	list := func(ctx context.Context, there *clusters.Target) error {
		_, err := there.Metadata.Resource(configMaps).List(ctx, metav1.ListOptions{})
		return err
	}
	discover := func(_ context.Context, there *clusters.Target) error {
		_, err := there.Client.RESTMapper().RESTMapping(schema.GroupKind{Kind: "X"}, "v1")
		return err
	}
	read := func(ctx context.Context, there *clusters.Target) error {
		read := &metav1.PartialObjectMetadata{}
		read.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))

		return there.APIReader.Get(ctx, client.ObjectKey{Name: "kube-system"}, read)
	}

	for name, c := range map[string]struct {
		ask             func(context.Context, *clusters.Target) error
		path            string
		mediaType, text string
		problem         string
	}{
		"owners of the first namespace": {
			identify, identity, "application/json",
			fmt.Sprintf(namespace, `"ownerReferences":[`+elements("{}", many)+`]`), tooMany,
		},
		"managers of the first namespace": {
			identify, identity, "application/json",
			fmt.Sprintf(namespace, `"managedFields":[`+elements("null", many)+`]`), tooMany,
		},
		"finalizers of the first namespace": {
			identify, identity, "application/json",
			fmt.Sprintf(namespace, `"finalizers":[`+elements(`""`, many)+`]`), tooMany,
		},
		"levels": {
			identify, identity, "application/json",
			fmt.Sprintf(namespace, `"x":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)),
			"has more than 100 levels of lists and maps",
		},
		"a text": {
			identify, identity, "application/json",
			fmt.Sprintf(namespace, `"x":"`+strings.Repeat("x", 16<<20)+`"`), "is larger than 16 MiB",
		},
		"another format": {
			identify, identity, "application/vnd.kubernetes.protobuf", "k8s\x00" + strings.Repeat("\x0a\x00", 1<<20),
			"sends a response that is not JSON",
		},
		"YAML": {
			identify, identity, "application/yaml", "a: &a [1, 2]\nb: [*a, *a]\n", "sends a response that is not JSON",
		},
		"no format": {identify, identity, "", fmt.Sprintf(namespace, `"x":0`), "sends a response that is not JSON"},
		"an error": {
			identify, identity, "application/json",
			`500 {"kind":"Status","apiVersion":"v1","details":{"causes":[` + elements("{}", many) + `]}}`, tooMany,
		},
		"objects of a list": {
			list, listed, "application/json", `{"kind":"List","items":[` + elements("{}", many) + `]}`, tooMany,
		},
		"groups": {
			discover, "/apis", "application/json", `{"groups":[` + elements("{}", many) + `]}`,
			"sends a response that lists no resources of its APIs, as Kubernetes does since 1.27",
		},
		"groups with their resources": {
			discover, "/apis", discovery, `{"items":[` + elements("{}", many) + `]}`, tooMany,
		},
		"the metadata of an object": {
			read, identity, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
			fmt.Sprintf(namespace, `"ownerReferences":[`+elements("{}", many)+`]`), tooMany,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			texts := map[string]string{c.path: c.text}

			pool, _ := newPool(t, secret("there", kubeConfig(answers(t, c.mediaType, texts))))

			there, err := pool.For(t.Context(), provider("a", "", "there"))
			if err == nil {
				err = c.ask(t.Context(), there)
			}

			g.Expect(err).To(MatchError(ContainSubstring(c.problem)))
		})
	}
}

// TestDiscoveryIsLimited: an API server cannot make the operator ask for each of the groups that it lists.
func TestDiscoveryIsLimited(t *testing.T) {
	g := NewWithT(t)

	var requests atomic.Int32

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/json")

		switch r.URL.Path {
		case "/api/v1/namespaces/kube-system":
			_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"x"}}`)
		case "/api":
			_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","groups":[`+elements(`{"name":"a","versions":[`+
				elements(`{"groupVersion":"a/v1","version":"v1"}`, 30)+`]}`, 300)+`]}`)
		default:
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)

	pool, _ := newPool(t, secret("there", kubeConfig(server.URL)))
	there, err := pool.For(t.Context(), provider("a", "", "there"))
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(there.Discover()).NotTo(Succeed())
	g.Expect(requests.Load()).To(BeNumerically("<", 10))
}

// TestErrorsOfOthers: what is no answer of an API server, such as the page of a proxy, is not quoted, and keeps its
// meaning.
func TestErrorsOfOthers(t *testing.T) {
	g := NewWithT(t)
	server := answers(t, "text/html", map[string]string{
		"/api/v1/configmaps": "404 <p>Nothing here</p>", "/api/v1/secrets": "500 <p>Broken here</p>",
	})
	pool, _ := newPool(t, secret("there", kubeConfig(server)))
	there := target(t, pool, provider("a", "", "there"))

	_, err := there.Metadata.Resource(configMaps).List(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)

	_, err = there.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).
		List(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsInternalError(err)).To(BeTrue(), "%v", err)
	g.Expect(err).NotTo(MatchError(ContainSubstring("here")))
}

// TestRoomOfResponses: how many large responses are in memory does not depend on how many clusters and namespaces send
// some, and small ones wait for none of them.
func TestRoomOfResponses(t *testing.T) {
	g := NewWithT(t)
	finish := make(chan struct{})

	var sent atomic.Int32 // as far as the sockets' buffers cannot hold the rest

	large := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")

		switch r.URL.Path {
		case "/api/v1/namespaces/kube-system":
			fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"there"}}`)
		case "/api/v1/secrets":
			fmt.Fprintf(w, `{"kind":"List","apiVersion":"v1","items":[{}],"x":[%s],"y":%q}`,
				elements("0", 3900), strings.Repeat("x", 245<<10))
		default:
			_, _ = fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","items":[{}],"x":"`, strings.Repeat("x", 15<<20))

			sent.Add(1)
			<-finish
			fmt.Fprint(w, `"}`)
		}
	}))
	t.Cleanup(large.Close)

	end := sync.OnceFunc(func() { close(finish) })
	t.Cleanup(end)

	var secrets []client.Object

	for _, namespace := range []string{"one", "two", "three"} {
		config := secret("there", kubeConfig(large.URL))
		config.Namespace = namespace
		secrets = append(secrets, config)
	}

	pool, _ := newPool(t, secrets...)
	there := func(namespace string) *clusters.Target {
		p := provider("a", "", "there")
		p.SetNamespace(namespace)

		return target(t, pool, p)
	}
	list := func(namespace, resource string) error {
		page, err := there(namespace).Metadata.Resource(corev1.SchemeGroupVersion.WithResource(resource)).
			List(t.Context(), metav1.ListOptions{})
		if err == nil && len(page.Items) != 1 {
			return fmt.Errorf("%d items", len(page.Items))
		}

		return err
	}
	ended := make(chan error)

	for range 3 {
		go func() { ended <- list("one", "configmaps") }()
	}

	g.Eventually(sent.Load).Should(BeEquivalentTo(1))
	g.Consistently(sent.Load, "200ms").Should(BeEquivalentTo(1), "a namespace has one place")

	for _, namespace := range []string{"two", "three", "three"} {
		go func() { ended <- list(namespace, "configmaps") }()
	}

	g.Eventually(sent.Load).Should(BeEquivalentTo(2))
	g.Consistently(sent.Load, "200ms").Should(BeEquivalentTo(2), "all of them have two")

	for _, namespace := range []string{"one", "two", "three"} {
		g.Expect(list(namespace, "secrets")).To(Succeed())
	}

	end()

	for range 6 {
		g.Eventually(ended, "20s").Should(Receive(BeNil()))
	}
}
