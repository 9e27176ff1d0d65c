package clusters

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

func TestMayWatch(t *testing.T) {
	deployments := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	roles := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(deployments, meta.RESTScopeNamespace)
	mapper.Add(roles, meta.RESTScopeRoot)

	for name, test := range map[string]struct {
		allowed    []string // what the user may do, as namespace/verb/group/resource
		namespaces map[string]cache.Config
		kind       schema.GroupVersionKind
		want       bool
		questions  int
	}{
		"everything":        {[]string{"/list/*/*", "/watch/*/*"}, nil, deployments, true, 2},
		"that kind":         {[]string{"/list/apps/deployments", "/watch/apps/deployments"}, nil, deployments, true, 4},
		"only list":         {[]string{"/list/apps/deployments"}, nil, deployments, false, 4},
		"nothing":           {nil, nil, deployments, false, 2},
		"another namespace": {[]string{"a/list/*/*", "a/watch/*/*"}, nil, deployments, false, 2},
		"all watched namespaces": {
			[]string{"a/list/*/*", "a/watch/*/*", "b/list/*/*", "b/watch/*/*"},
			map[string]cache.Config{"a": {}, "b": {}}, deployments, true, 4,
		},
		"one of the watched namespaces": {
			[]string{"a/list/*/*", "a/watch/*/*"}, map[string]cache.Config{"a": {}, "b": {}}, deployments, false, 4,
		},
		"a kind without namespaces": {
			[]string{"a/list/*/*", "a/watch/*/*"}, map[string]cache.Config{"a": {}}, roles, false, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			questions := 0

			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				review := authorizationv1.SelfSubjectAccessReview{}
				g.Expect(json.NewDecoder(r.Body).Decode(&review)).To(Succeed())

				questions++
				of := review.Spec.ResourceAttributes
				review.Status.Allowed = slices.Contains(test.allowed, of.Namespace+"/"+of.Verb+"/"+of.Group+"/"+of.Resource)

				w.Header().Set("Content-Type", "application/json")
				g.Expect(json.NewEncoder(w).Encode(review)).To(Succeed())
			}))
			defer server.Close()

			config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
			connection := Connection{
				Config: config, HTTPClient: server.Client(), Mapper: mapper, Namespaces: test.namespaces,
			}
			access, err := connection.newAccess()
			g.Expect(err).NotTo(HaveOccurred())

			for range 3 { // the answers are remembered
				g.Expect(access.mayWatch(t.Context(), test.kind)).To(Equal(test.want))
				g.Expect(questions).To(Equal(test.questions))
			}

			_, err = access.mayWatch(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Unknown"})
			g.Expect(meta.IsNoMatchError(err)).To(BeTrue())
		})
	}
}

// TestQuestionsDoNotWaitForOthers checks that a question is answered while the API server takes its time
// with another one.
func TestQuestionsDoNotWaitForOthers(t *testing.T) {
	g := NewWithT(t)
	asked, release := make(chan struct{}), make(chan struct{})

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := authorizationv1.SelfSubjectAccessReview{}
		_ = json.NewDecoder(r.Body).Decode(&review)

		if review.Spec.ResourceAttributes.Resource == "slow" {
			close(asked)
			<-release
		}

		review.Status.Allowed = true

		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	defer server.Close()

	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	access, err := Connection{Config: config, HTTPClient: server.Client()}.newAccess()
	g.Expect(err).NotTo(HaveOccurred())

	answered := make(chan error, 1)

	go func() {
		_, err := access.ask(t.Context(), authorizationv1.ResourceAttributes{Resource: "slow"})
		answered <- err
	}()

	g.Eventually(asked).Should(BeClosed())

	other := make(chan error, 1)

	go func() {
		_, err := access.ask(t.Context(), authorizationv1.ResourceAttributes{Resource: "fast"})
		other <- err
	}()

	g.Eventually(other).Should(Receive(BeNil()))
	g.Expect(answered).NotTo(Receive())

	close(release)
	g.Eventually(answered).Should(Receive(BeNil()))
}
