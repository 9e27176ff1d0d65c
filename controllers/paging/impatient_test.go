package paging_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/controllers/paging"
)

// TestWithoutWaiting: a list that the API server cannot answer now is sent once, and its answer is the result.
func TestWithoutWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		context func(context.Context) context.Context
		once    bool
	}{
		"waiting":         {func(ctx context.Context) context.Context { return ctx }, false},
		"without waiting": {paging.WithoutWaiting, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests++

				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			t.Cleanup(server.Close)

			config := &rest.Config{Host: server.URL}
			httpClient, err := rest.HTTPClientFor(config)
			g.Expect(err).NotTo(HaveOccurred())
			client, err := metadata.NewForConfigAndClient(config, paging.Impatient(httpClient))
			g.Expect(err).NotTo(HaveOccurred())

			resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
			_, err = client.Resource(resource).List(c.context(t.Context()), metav1.ListOptions{})
			g.Expect(apierrors.IsTooManyRequests(err)).To(BeTrue(), "%v", err)
			g.Expect(requests == 1).To(Equal(c.once))
		})
	}
}
