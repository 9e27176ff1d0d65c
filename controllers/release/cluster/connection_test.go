package cluster

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// TestUpgradeOfTheCluster: the version and the APIs of the cluster are read again once it was upgraded, without a
// restart. Otherwise only its version is asked for, and not each time.
func TestUpgradeOfTheCluster(t *testing.T) {
	g := NewWithT(t)
	minor, kind := "35", "Old"
	requests := map[string]int{}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests[r.URL.Path]++

		w.Header().Set("Content-Type", "application/json")

		switch r.URL.Path {
		case "/version":
			_, _ = fmt.Fprintf(w, `{"major":"1","minor":%q,"gitVersion":"v1.%s.0"}`, minor, minor)
		case "/api":
			_, _ = fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/api/v1":
			_, _ = fmt.Fprintf(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"x","kind":%q}]}`, kind)
		default:
			_, _ = fmt.Fprint(w, `{"kind":"APIGroupList","groups":[]}`)
		}
	}))
	defer server.Close()

	connection, err := Connect(&rest.Config{Host: server.URL})
	g.Expect(err).NotTo(HaveOccurred())

	expect := func(version, kind string) {
		t.Helper()

		capabilities, err := connection.Capabilities()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(capabilities.KubeVersion.Version).To(Equal(version))
		g.Expect(capabilities.APIVersions.Has("v1/" + kind)).To(BeTrue())

		_, err = connection.Mapping(schema.GroupVersionKind{Version: "v1", Kind: kind})
		g.Expect(err).NotTo(HaveOccurred())
	}

	expect("v1.35.0", "Old")

	minor, kind = "36", "New"

	expect("v1.35.0", "Old")
	g.Expect(requests["/version"]).To(Equal(1))

	connection.asked = connection.asked.Add(-versionAge)

	expect("v1.36.0", "New")
	g.Expect(requests["/version"]).To(Equal(2))

	discovered := requests["/api/v1"]
	connection.asked = connection.asked.Add(-versionAge)

	expect("v1.36.0", "New")
	g.Expect(requests["/version"]).To(Equal(3))
	g.Expect(requests["/api/v1"]).To(Equal(discovered), "nothing has changed")
}

// TestSlowDiscoveryDelaysNoOtherRequest checks that objects are read and written while the API server, or the server of
// an aggregated API, takes its time to say what it serves.
func TestSlowDiscoveryDelaysNoOtherRequest(t *testing.T) {
	g := NewWithT(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-answer
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(answer) })

	connection, err := Connect(&rest.Config{Host: server.URL})
	g.Expect(err).NotTo(HaveOccurred())

	discovered := make(chan error, 1)

	go func() {
		_, err := connection.Capabilities()
		discovered <- err
	}()

	<-asked

	created := make(chan error, 1)

	go func() {
		_, err := connection.restClient(schema.GroupVersion{Version: "v1"})
		created <- err
	}()

	g.Eventually(created).WithTimeout(5 * time.Second).Should(Receive(BeNil()))
	g.Expect(discovered).NotTo(Receive())
}
