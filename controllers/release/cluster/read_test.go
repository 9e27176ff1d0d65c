package cluster

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
)

// TestAnswersOfAnotherShape: a server that answers with a list instead of an object, or the other way round, causes an
// error.
func TestAnswersOfAnotherShape(t *testing.T) {
	g := NewWithT(t)
	answers := map[string]string{
		"/api":        `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":       `{"kind":"APIGroupList","groups":[]}`,
		"/api/v1":     `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"x","kind":"X"}]}`,
		"/api/v1/x":   `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}`,
		"/api/v1/x/a": `{"apiVersion":"v1","kind":"XList","items":[]}`,
	}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, answers[r.URL.Path])
	}))
	defer server.Close()

	connection, err := Connect(&rest.Config{Host: server.URL})
	g.Expect(err).NotTo(HaveOccurred())

	kind := schema.GroupVersionKind{Version: "v1", Kind: "X"}
	client := NewClient(connection, types.NamespacedName{}, logr.Discard())

	_, err = client.Any(kind, "", func(*unstructured.Unstructured) bool { return true })
	g.Expect(err).To(MatchError("list X: the API server's answer is not a list"))

	mapping, err := connection.Mapping(kind)
	g.Expect(err).NotTo(HaveOccurred())
	requests, err := connection.restClient(kind.GroupVersion())
	g.Expect(err).NotTo(HaveOccurred())

	_, err = client.Get(&resource.Info{Client: requests, Mapping: mapping, Name: "a"})
	g.Expect(err).To(MatchError("the API server's answer is not an object"))
}
