package callers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/ui"
)

// header returns headers of a request with a token and others, as "NAME", "VALUE", ….
func header(token string, others ...string) http.Header {
	h := http.Header{"Authorization": {"Bearer " + token}}
	for i := 0; i < len(others); i += 2 {
		h.Add(others[i], others[i+1])
	}

	return h
}

// site is a status page for the callers of a cluster.
type site struct {
	*httptest.Server

	feed *ui.Feed
}

// serve returns a site whose options change can change.
func (c *cluster) serve(t *testing.T, access *Access, change ...func(*ui.Options)) *site {
	t.Helper()

	s := &site{feed: &ui.Feed{}}

	options := ui.Options{Base: "/", Access: access, Feed: s.feed}
	for _, c := range change {
		c(&options)
	}

	s.Server = httptest.NewServer(ui.NewHandler(options))

	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})

	return s
}

// open sends a request.
func (s *site) open(t *testing.T, path string, h http.Header) *http.Response {
	t.Helper()
	g := NewWithT(t)

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())

	request.Header = h
	response, err := http.DefaultClient.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = response.Body.Close() })

	return response
}

// get returns the status code and the body of a page.
func (s *site) get(t *testing.T, path string, h http.Header) (int, string) {
	t.Helper()

	response := s.open(t, path, h) //nolint:bodyclose // it is closed after the test

	body, err := io.ReadAll(response.Body)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return response.StatusCode, string(body)
}

// TestProviders checks which providers a caller sees.
func TestProviders(t *testing.T) {
	const core, aws, azure = "cluster-api", "infrastructure-aws", "infrastructure-azure"

	for name, c := range map[string]struct {
		rules []string
		sees  []string // nothing if the caller is refused
		whole bool
	}{
		"all":           {[]string{"jane"}, []string{core, aws, azure}, true},
		"one kind":      {[]string{"jane list infrastructureproviders "}, []string{aws, azure}, false},
		"one namespace": {[]string{"jane list infrastructureproviders capa-system"}, []string{aws}, false},
		"two namespaces": {
			[]string{"jane list infrastructureproviders capa-system", "jane list coreproviders capi-system"},
			[]string{core, aws}, false,
		},
		"another namespace": {[]string{"jane list infrastructureproviders default"}, nil, false},
		"get without list":  {[]string{"jane get infrastructureproviders "}, nil, false},
		"other resources":   {[]string{"jane list secrets ", "jane get secrets "}, nil, false},
		"of another user":   {[]string{"john"}, nil, false},
		"nothing":           {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cluster := newCluster(t)
			cluster.may(c.rules...)
			s := cluster.serve(t, cluster.access(t))
			code, body := s.get(t, "/", header("jane-token"))

			for label, path := range map[string]string{
				core: "CoreProvider/capi-system/cluster-api", aws: "InfrastructureProvider/capa-system/aws",
				azure: "InfrastructureProvider/capz-system/azure",
			} {
				visible := ContainElement(label)
				code, page := s.get(t, "/providers/"+path, header("jane-token"))

				switch seen, err := visible.Match(c.sees); {
				case err == nil && seen:
					g.Expect(body).To(ContainSubstring(label))
					g.Expect(code).To(Equal(http.StatusOK))
				case len(c.sees) == 0:
					g.Expect(code).To(Equal(http.StatusForbidden))
				default:
					g.Expect(code).To(Equal(http.StatusNotFound), "the same as for one that does not exist")
					g.Expect(body).NotTo(ContainSubstring(label))
					g.Expect(page).NotTo(ContainSubstring("Conditions"))
				}
			}

			if len(c.sees) == 0 {
				g.Expect(code).To(Equal(http.StatusForbidden))
				g.Expect(body).To(ContainSubstring("User jane may list no provider in this cluster."))

				return
			}

			limited := ContainSubstring("Providers that you may not list are left out.")
			if c.whole {
				limited = Not(limited)
			}

			g.Expect(body).To(limited)
		})
	}
}

// TestDetails checks which facts about a provider a caller sees, and that the page names what is missing.
func TestDetails(t *testing.T) {
	const list = "jane list infrastructureproviders "

	for name, c := range map[string]struct {
		rules    []string
		has, not []string
	}{
		"all": {
			[]string{"jane"},
			[]string{"registry.example.com/aws:v1", "credentials", "PASSWORD", "Upgraded", "by helm", "instance"},
			[]string{"Not known", "not shown"},
		},
		"nothing but the provider": {
			[]string{list},
			[]string{
				"objects: 3 of the release are not shown", "secrets is forbidden: user jane may not get them",
				"events is forbidden", "customresourcedefinitions.apiextensions.k8s.io is forbidden",
				"REGION", "Revision 1", "the history in the status of the resource",
			},
			[]string{"registry.example.com", "credentials", "PASSWORD", "Upgraded", "by helm", "instance"},
		},
		"Deployments and events of its namespace": {
			[]string{list, "jane get deployments capa-system", "jane list events capa-system"},
			[]string{"registry.example.com/aws:v1", "objects: 2 of the release are not shown", "Upgraded"},
			[]string{"credentials", "PASSWORD", "by helm", "instance"},
		},
		"Deployments of another namespace": {
			[]string{list, "jane get deployments default", "jane list deployments "},
			[]string{"objects: 3 of the release are not shown"},
			[]string{"registry.example.com"},
		},
		"the names of variables, but not the history": {
			[]string{list, "jane get secrets capa-system"},
			[]string{"PASSWORD", "credentials", "the history in the status of the resource"},
			[]string{"by helm"},
		},
		"the history, but not the names of variables": {
			[]string{list, "jane list secrets capa-system"}, []string{"by helm"}, []string{"PASSWORD", "credentials"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cluster := newCluster(t)
			cluster.may(c.rules...)

			code, body := cluster.serve(t, cluster.access(t)).
				get(t, "/providers/InfrastructureProvider/capa-system/aws", header("jane-token"))
			g.Expect(code).To(Equal(http.StatusOK))
			g.Expect(body).NotTo(ContainSubstring(secretValue))

			for _, text := range c.has {
				g.Expect(body).To(ContainSubstring(text))
			}

			for _, text := range c.not {
				g.Expect(body).NotTo(ContainSubstring(text))
			}
		})
	}
}

// TestUpdates checks that a caller is not notified of providers that it may not see.
func TestUpdates(t *testing.T) {
	g := NewWithT(t)
	cluster := newCluster(t)
	cluster.may("jane list infrastructureproviders capa-system")
	s := cluster.serve(t, cluster.access(t))

	var received sync.Map

	stream := s.open(t, "/events", header("jane-token")) //nolint:bodyclose // it is closed after the test
	g.Expect(stream.StatusCode).To(Equal(http.StatusOK))

	text := func() string {
		known, _ := received.Load("text")
		read, _ := known.(string)

		return read
	}

	go func() {
		buffer := make([]byte, 4096)

		for {
			n, err := stream.Body.Read(buffer)
			received.Store("text", text()+string(buffer[:n]))

			if err != nil {
				return
			}
		}
	}()

	g.Eventually(s.feed.Watched).Should(BeTrue())
	s.feed.Changed("InfrastructureProvider/capz-system/azure")
	s.feed.Changed("InfrastructureProvider/capa-system/aws")
	g.Eventually(text, 5*time.Second).Should(ContainSubstring("data: InfrastructureProvider/capa-system/aws\n"))
	g.Expect(text()).NotTo(ContainSubstring("azure"))
}
