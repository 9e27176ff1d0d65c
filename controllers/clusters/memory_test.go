package clusters

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// More reconciles than there is memory for need the same list, and each of them reads something else before.
func TestReconcilesThatShareAListDoNotWaitForEachOther(t *testing.T) {
	g := NewWithT(t)
	large := strings.Repeat("x", 100<<10)
	_, guarded, address := guardedClient(t, func(w http.ResponseWriter, r *http.Request) {
		const list = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"text":%q,"items":[` +
			`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"tiny","name":"a"}}]}`

		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[`+
				`{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get","list"]}]}`)
		default:
			fmt.Fprintf(w, list, large)
		}
	})
	guarded.limits.Timeout = time.Minute

	pool := &Pool{memory: guarded.memory}
	there, err := client.New(&rest.Config{Host: address, WrapTransport: guarded.wrap, QPS: -1}, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	reader := &polledReader{polls: newPolls(there), account: there}
	ended := make(chan error)

	for range 10 {
		go func() {
			ended <- func() error {
				ctx, leave, err := pool.Enter(t.Context(), "tenant", &Target{Remote: true})
				if err != nil {
					return err
				}
				defer leave()

				if err := there.List(ctx, &corev1.ConfigMapList{}); err != nil {
					return err
				}

				return reader.Get(ctx, client.ObjectKey{Namespace: "tiny", Name: "a"}, configMap())
			}()
		}()
	}

	for range 10 {
		g.Eventually(ended).WithTimeout(20 * time.Second).Should(Receive(BeNil()))
	}
}
