package ui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// memory is a cluster in memory. It is safe for concurrent use.
type memory struct {
	mu        sync.Mutex
	providers []v1alpha2.Provider
	withheld  string // why contents are not compared
	down      error  // of Providers
	err       error  // of Detailed, History and Compare
}

func (m *memory) Providers(context.Context) ([]v1alpha2.Provider, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.providers, m.down
}

func (m *memory) set(providers ...v1alpha2.Provider) {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.providers = providers
}

// fail sets why the cluster cannot be read.
func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.down = err
}

// withhold sets why contents are not compared.
func (m *memory) withhold(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.withheld = reason
}

func (m *memory) Detailed(_ context.Context, p v1alpha2.Provider) (view.Provider, error) {
	v := view.NewProvider(p)
	v.Details = &view.Details{Images: []string{"registry.example.com/aws:v1"}}

	return v, m.err
}

func (m *memory) History(context.Context, v1alpha2.Provider) ([]view.Revision, error) {
	return []view.Revision{
		{Revision: 6, Status: "superseded", By: "capstan", Version: "v1.0.0", Reason: "installation"},
		{Revision: 7, Status: "deployed", By: "capstan", Version: "v1.1.0", Reason: "version"},
	}, m.err
}

func (m *memory) Compare(_ context.Context, _ v1alpha2.Provider, sides view.Sides) (view.Comparison, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	from := fmt.Sprintf("revision %d", sides.From)

	return view.Comparison{
		From: "v1.0.0", To: "v1.1.0", Withheld: m.withheld,
		Changes: []objectdiff.Change{
			{
				Object: "Deployment capa-system/manager", Kind: objectdiff.Changed,
				Diff: "@@ -7,7 +7,7 @@\n       containers:\n       - args:\n" +
					"-        - --from=" + from + "\n+        - --token=<masked TOKEN, changed>\n",
			},
			{Object: "ServiceAccount capa-system/new", Kind: objectdiff.Created, Diff: "@@ -0,0 +1 @@\n+kind: ServiceAccount\n"},
			{
				Object: "Service capa-system/old", Kind: objectdiff.Deleted,
				Diff: "@@ -1 +0,0 @@\n-kind: Service " + hostile + "\n",
			},
		},
	}, m.err
}

func aws(name string) v1alpha2.Provider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: name}}
	p.Status.History = []v1alpha2.ReleaseRevision{{Number: 5, Status: "deployed"}}

	return p
}

// site is a status page that can be stopped, and started again at the same address.
type site struct {
	*Site

	memory  *memory
	address string
	stop    func()
}

func newSite(t *testing.T) *site {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	s := &site{memory: &memory{providers: []v1alpha2.Provider{aws("aws")}}, address: listener.Addr().String()}
	s.Site = NewSite(s.memory, "", listener.Addr())
	s.serve(listener)
	t.Cleanup(func() { s.stop() })

	return s
}

func (s *site) serve(listener net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)

	go func() { served <- s.Serve(ctx, listener) }()

	s.stop = sync.OnceFunc(func() {
		cancel()
		<-served
	})
}

// start starts the site again.
func (s *site) start(t *testing.T) {
	t.Helper()

	listener, err := net.Listen("tcp", s.address)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	s.serve(listener)
}

// answer is a response that has been read.
type answer struct {
	code   int
	header http.Header
}

// get sends a request, which change may change first. It also returns the body.
func get(t *testing.T, url string, change func(*http.Request)) (answer, string) {
	t.Helper()
	g := NewWithT(t)

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())

	if change != nil {
		change(request)
	}

	// Redirects are answers.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	g.Expect(err).NotTo(HaveOccurred())

	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())

	return answer{response.StatusCode, response.Header}, string(body)
}

func TestPages(t *testing.T) {
	s := newSite(t)

	for path, want := range map[string]string{
		"": "infrastructure-aws",
		"providers/InfrastructureProvider/capa-system/aws":                     "registry.example.com/aws:v1",
		"providers/InfrastructureProvider/capa-system/aws/compare":             "capstan diff infrastructure-aws",
		"providers/InfrastructureProvider/capa-system/aws/compare?from=6&to=7": "--from=revision 6",
		"static/style.css": "prefers-color-scheme: dark",
		"static/live.js":   "XMLHttpRequest",
		"static/icon.svg":  "<svg",
	} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			response, body := get(t, s.URL()+path, nil)
			g.Expect(response.code).To(Equal(http.StatusOK))
			g.Expect(body).To(ContainSubstring(want))
			checkHeaders(t, response.header)
		})
	}

	for path, code := range map[string]int{
		"providers/InfrastructureProvider/capa-system/azure":                   http.StatusNotFound,
		"providers/InfrastructureProvider/capa-system/azure/compare":           http.StatusNotFound,
		"providers/InfrastructureProvider/capa-system/aws/compare?from=x":      http.StatusBadRequest,
		"providers/InfrastructureProvider/capa-system/aws/compare?from=1&to=-": http.StatusBadRequest,
		"providers/Secret/capa-system/aws":                                     http.StatusNotFound,
		"static/":                                                              http.StatusNotFound,
		"static/../providers":                                                  http.StatusTemporaryRedirect,
		"unknown":                                                              http.StatusNotFound,
	} {
		t.Run(path, func(t *testing.T) {
			response, _ := get(t, s.URL()+path, nil)
			NewWithT(t).Expect(response.code).To(Equal(code))
			checkHeaders(t, response.header)
		})
	}
}

// checkHeaders checks that a response lets no other site and no code in the page do anything, and stores nothing.
func checkHeaders(t *testing.T, h http.Header) {
	t.Helper()

	g := NewWithT(t)
	g.Expect(h.Get("Content-Security-Policy")).To(And(
		HavePrefix("default-src 'none';"), Not(ContainSubstring("unsafe")), Not(ContainSubstring("http")),
		ContainSubstring("frame-ancestors 'none'"), ContainSubstring("base-uri 'none'"),
		ContainSubstring("require-trusted-types-for 'script'; trusted-types 'none'"),
	))
	g.Expect(h.Get("X-Content-Type-Options")).To(Equal("nosniff"))
	g.Expect(h.Get("Referrer-Policy")).To(Equal("no-referrer"), "the URL contains the token")
	g.Expect(h.Get("Cache-Control")).To(Equal("no-store"))
	g.Expect(h.Get("Cross-Origin-Resource-Policy")).To(Equal("same-origin"))
	g.Expect(h).NotTo(HaveKey("Set-Cookie"))
	g.Expect(h).NotTo(HaveKey("Access-Control-Allow-Origin"))
}

// TestRefused checks that the page is read-only, and only for the user of this computer.
func TestRefused(t *testing.T) {
	s := newSite(t)
	root, _, _ := strings.Cut(strings.TrimPrefix(s.URL(), "http://"), "/")

	for name, c := range map[string]struct {
		url    string
		change func(*http.Request)
		code   int
	}{
		"without the token":      {"http://" + root + "/", nil, http.StatusForbidden},
		"with another token":     {"http://" + root + "/AAAAAAAAAAAAAAAAAAAAAAAAAA/", nil, http.StatusForbidden},
		"with a part of it":      {strings.TrimSuffix(s.URL(), "/")[:len(s.URL())-3] + "/", nil, http.StatusForbidden},
		"static, no token":       {"http://" + root + "/static/live.js", nil, http.StatusForbidden},
		"with a name of a site":  {s.URL(), host("evil.example.com"), http.StatusMisdirectedRequest},
		"with another port":      {s.URL(), host("localhost:1"), http.StatusMisdirectedRequest},
		"that would change":      {s.URL(), method(http.MethodPost), http.StatusMethodNotAllowed},
		"that would delete":      {s.URL(), method(http.MethodDelete), http.StatusMethodNotAllowed},
		"with an unknown method": {s.URL(), method("PROPFIND"), http.StatusMethodNotAllowed},
		"with a body": {s.URL(), func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader("x"))
			r.ContentLength = 1
		}, http.StatusBadRequest},
		"of another site's script": {s.URL(), func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "cors")
		}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			response, body := get(t, c.url, c.change)
			g.Expect(response.code).To(Equal(c.code), body)
			g.Expect(body).NotTo(ContainSubstring("infrastructure-aws"))
			checkHeaders(t, response.header)
		})
	}

	g := NewWithT(t)
	response, _ := get(t, s.URL(), func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
	})
	g.Expect(response.code).To(Equal(http.StatusOK), "a link of another site")

	response, _ = get(t, s.URL(), host(strings.Replace(root, "127.0.0.1", "localhost", 1)))
	g.Expect(response.code).To(Equal(http.StatusOK), "localhost")

	response, _ = get(t, strings.TrimSuffix(s.URL(), "/"), nil)
	g.Expect(response.code).To(Equal(http.StatusFound), "without the last slash")
	g.Expect(s.URL()).To(HaveSuffix(response.header.Get("Location")))
}

// host and method change a request.
func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func method(name string) func(*http.Request) { return func(r *http.Request) { r.Method = name } }

// TestUnreadable checks that a page shows what the resource contains if the rest cannot be read.
func TestUnreadable(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t)
	s.memory.err = errors.New("secrets is forbidden")

	response, body := get(t, s.URL()+"providers/InfrastructureProvider/capa-system/aws", nil)
	g.Expect(response.code).To(Equal(http.StatusOK))
	g.Expect(body).To(ContainSubstring("release and objects: secrets is forbidden"))
	g.Expect(body).To(ContainSubstring("Revision 5"))
	g.Expect(body).To(ContainSubstring("cannot be read: secrets is forbidden"))

	response, body = get(t, s.URL()+"providers/InfrastructureProvider/capa-system/aws/compare", nil)
	g.Expect(response.code).To(Equal(http.StatusOK))
	g.Expect(body).To(ContainSubstring("This cannot be compared: secrets is forbidden"))
}

// TestFirstPaint checks that the overview of 500 providers needs nothing but the resources.
func TestFirstPaint(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t)
	many := make([]v1alpha2.Provider, 500)

	for i := range many {
		many[i] = aws(fmt.Sprintf("aws-%d", i))
	}

	s.memory.set(many...)
	s.memory.err = errors.New("the overview needs nothing but the resources")

	_, body := get(t, s.URL(), nil)
	g.Expect(strings.Count(body, `<tr class="waiting"`)).To(Equal(500))
}

// TestIdleConnectionsEnd: clients cannot keep connections open until the page has no files left. Without the token, one
// ends with its first request.
func TestIdleConnectionsEnd(t *testing.T) {
	usual := idleTimeout
	idleTimeout = 100 * time.Millisecond

	t.Cleanup(func() { idleTimeout = usual })

	s := newSite(t)

	for name, path := range map[string]string{"without the token": "/", "with the token": s.base() + "static/style.css"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			conn, err := net.Dial("tcp", s.address)
			g.Expect(err).NotTo(HaveOccurred())

			defer conn.Close()

			_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, s.address)
			g.Expect(err).NotTo(HaveOccurred())

			in := bufio.NewReader(conn)
			response, err := http.ReadResponse(in, nil)
			g.Expect(err).NotTo(HaveOccurred())

			defer response.Body.Close()

			_, err = io.Copy(io.Discard, response.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.Close).To(Equal(name == "without the token"))

			g.Expect(conn.SetReadDeadline(time.Now().Add(10 * time.Second))).To(Succeed())

			_, err = in.ReadByte()
			g.Expect(err).To(MatchError(io.EOF))
		})
	}
}
