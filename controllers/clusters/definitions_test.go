package clusters_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
)

// olderServer is an API server with some CRDs that sends the present ones only as lists, and everything at
// once to those that ask for version 0.
type olderServer struct {
	count int

	mu      sync.Mutex
	largest int // page
}

func (s *olderServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")

	query := r.URL.Query()

	switch {
	case query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422}`)
	case query.Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		_ = json.NewEncoder(w).Encode(s.page(query.Get("resourceVersion"), query.Get("limit"), query.Get("continue")))
	}
}

// page returns a page of CRDs. The token is the number of the first one.
func (s *olderServer) page(version, limit, token string) *apiextensionsv1.CustomResourceDefinitionList {
	first, _ := strconv.Atoi(token)
	last := s.count

	if n, _ := strconv.Atoi(limit); n > 0 && version != "0" {
		last = min(first+n, s.count)
	}

	list := &apiextensionsv1.CustomResourceDefinitionList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinitionList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "7"},
	}

	if last < s.count {
		list.Continue = strconv.Itoa(last)
	}

	for i := first; i < last; i++ {
		list.Items = append(list.Items, apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{}},
			}},
		})
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.largest = max(s.largest, last-first)

	return list
}

func TestDefinitionsOfAnOlderServer(t *testing.T) {
	g := NewWithT(t)
	there := &olderServer{count: 60}
	server := httptest.NewServer(there)
	t.Cleanup(server.Close)

	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), meta.RESTScopeRoot)

	scheme := runtime.NewScheme()
	g.Expect(crds.AddToScheme(scheme)).To(Succeed())

	cluster, err := clusters.NewCluster(clusters.Connection{
		Config: &rest.Config{Host: server.URL}, HTTPClient: server.Client(), Mapper: mapper, Scheme: scheme,
	}, nil)
	g.Expect(err).NotTo(HaveOccurred())

	go func() { _ = cluster.Definitions.Start(t.Context()) }()

	g.Expect(cluster.Definitions.WaitForCacheSync(t.Context())).To(BeTrue())

	list := &apiextensionsv1.CustomResourceDefinitionList{}
	g.Expect(cluster.Definitions.List(t.Context(), list)).To(Succeed())
	g.Expect(list.Items).To(HaveLen(there.count))
	g.Expect(list.Items).To(HaveEach(WithTransform(
		func(c apiextensionsv1.CustomResourceDefinition) any { return c.Spec.Versions[0].Schema }, BeNil())))
	g.Expect(there.largest).To(Equal(10))

	crd := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(cluster.Definitions.Get(t.Context(), client.ObjectKey{Name: "c59"}, crd)).To(Succeed())
}
