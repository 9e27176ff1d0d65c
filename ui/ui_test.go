package ui_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/objectdiff"
	"github.com/capstan-project/capstan/ui"
)

// memory is a cluster in memory. It is safe for concurrent use.
type memory struct {
	mu        sync.Mutex
	providers []v1alpha2.Provider
	unknown   []string // objects that cannot be compared
	err       error    // of Detailed, History and Compare
}

func (m *memory) Providers(context.Context) ([]v1alpha2.Provider, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.providers, nil
}

func (m *memory) set(providers ...v1alpha2.Provider) {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.providers = providers
}

// hide sets what cannot be compared.
func (m *memory) hide(unknown ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.unknown = unknown
}

func (m *memory) Detailed(_ context.Context, p v1alpha2.Provider) (facts.Provider, error) {
	v := facts.NewProvider(p)
	v.Details = &facts.Details{Images: []string{"registry.example.com/aws:v1"}}

	return v, m.err
}

func (m *memory) History(context.Context, v1alpha2.Provider) ([]facts.Revision, error) {
	return []facts.Revision{
		{Revision: 6, Status: "superseded", By: "capstan", Version: "v1.0.0", Reason: "generation 1 of the resource"},
		{Revision: 7, Status: "deployed", By: "capstan", Version: "v1.1.0", Reason: "generation 2 of the resource"},
	}, m.err
}

func (m *memory) Compare(_ context.Context, _ v1alpha2.Provider, sides facts.Sides) (facts.Comparison, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	from := fmt.Sprintf("revision %d", sides.From)

	return facts.Comparison{
		From: "v1.0.0", To: "v1.1.0", Unknown: m.unknown,
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

func (*memory) Visible(_ context.Context, found []facts.Usage) ([]facts.Usage, error) {
	return found, nil
}

func aws(name string) v1alpha2.Provider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: name}}
	p.Status.History = []v1alpha2.ReleaseRevision{{Revision: 5, Status: "deployed"}}

	return p
}

// site is a status page for the user of this computer. It can be stopped and started again at the same address.
type site struct {
	cluster *memory
	feed    *ui.Feed
	url     string // of the overview

	address net.Addr
	handler http.Handler
	server  *httptest.Server
}

// newSite returns a site whose options change can change.
func newSite(t *testing.T, change ...func(*ui.Options)) *site {
	t.Helper()

	s := &site{cluster: &memory{providers: []v1alpha2.Provider{aws("aws")}}, feed: &ui.Feed{}}
	access := ui.NewLocal(s.cluster)

	options := ui.Options{Base: access.Base(), Access: access, Feed: s.feed}
	for _, c := range change {
		c(&options)
	}

	handler := ui.NewHandler(options)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	s.address = listener.Addr()
	s.handler = access.Guard(s.address, handler)
	s.url = "http://" + s.address.String() + access.Base()
	s.serve(listener)
	t.Cleanup(s.stop)

	return s
}

func (s *site) serve(listener net.Listener) {
	s.server = &httptest.Server{Listener: listener, Config: ui.NewServer(s.handler)}
	s.server.Start()
}

// start starts the site again.
func (s *site) start(t *testing.T) {
	t.Helper()

	listener, err := net.Listen("tcp", s.address.String())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	s.serve(listener)
}

// stop stops the site. Streams end before the server does.
func (s *site) stop() {
	s.server.CloseClientConnections()
	s.server.Close()
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
		"":             "infrastructure-aws",
		"?state=ready": "No provider matches the filter.",
		"providers/InfrastructureProvider/capa-system/aws":                     "registry.example.com/aws:v1",
		"providers/InfrastructureProvider/capa-system/aws/compare":             "capstan diff --live infrastructure-aws",
		"providers/InfrastructureProvider/capa-system/aws/compare?from=6&to=7": "--from=revision 6",
		"plan":             "capstan upgrade plan",
		"dependencies":     "capstan delete --all --dry-run",
		"static/style.css": "prefers-color-scheme: dark",
		"static/live.js":   "EventSource",
		"static/icon.svg":  "<svg",
	} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			response, body := get(t, s.url+path, nil)
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
		"static/../events":                                                     http.StatusTemporaryRedirect,
		"unknown":                                                              http.StatusNotFound,
		"?search=" + strings.Repeat("x", 3000):                                 http.StatusRequestURITooLong,
	} {
		t.Run(path[:min(len(path), 40)], func(t *testing.T) {
			response, _ := get(t, s.url+path, nil)
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
	root, _, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), "/")

	for name, c := range map[string]struct {
		url    string
		change func(*http.Request)
		code   int
	}{
		"without the token":      {"http://" + root + "/", nil, http.StatusForbidden},
		"with another token":     {"http://" + root + "/AAAAAAAAAAAAAAAAAAAAAAAAAA/", nil, http.StatusForbidden},
		"with a part of it":      {strings.TrimSuffix(s.url, "/")[:len(s.url)-3] + "/", nil, http.StatusForbidden},
		"static, no token":       {"http://" + root + "/static/live.js", nil, http.StatusForbidden},
		"with a name of a site":  {s.url, host("evil.example.com"), http.StatusMisdirectedRequest},
		"with another port":      {s.url, host("localhost:1"), http.StatusMisdirectedRequest},
		"that would change":      {s.url, method(http.MethodPost), http.StatusMethodNotAllowed},
		"that would delete":      {s.url, method(http.MethodDelete), http.StatusMethodNotAllowed},
		"with an unknown method": {s.url, method("PROPFIND"), http.StatusMethodNotAllowed},
		"with a body": {s.url, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader("x"))
			r.ContentLength = 1
		}, http.StatusBadRequest},
		"of another site's script": {s.url, func(r *http.Request) {
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
	response, _ := get(t, s.url, func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
	})
	g.Expect(response.code).To(Equal(http.StatusOK), "a link of another site")

	response, _ = get(t, s.url, host(strings.Replace(root, "127.0.0.1", "localhost", 1)))
	g.Expect(response.code).To(Equal(http.StatusOK), "localhost")

	response, _ = get(t, strings.TrimSuffix(s.url, "/"), nil)
	g.Expect(response.code).To(Equal(http.StatusFound), "without the last slash")
	g.Expect(s.url).To(HaveSuffix(response.header.Get("Location")))
}

// host and method change a request.
func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func method(name string) func(*http.Request) { return func(r *http.Request) { r.Method = name } }

// TestUnreadable checks that a page shows what the resource contains if the rest cannot be read.
func TestUnreadable(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t)
	s.cluster.err = errors.New("secrets is forbidden")

	response, body := get(t, s.url+"providers/InfrastructureProvider/capa-system/aws", nil)
	g.Expect(response.code).To(Equal(http.StatusOK))
	g.Expect(body).To(ContainSubstring("release and objects: secrets is forbidden"))
	g.Expect(body).To(ContainSubstring("Revision 5"))
	g.Expect(body).To(ContainSubstring("cannot be read: secrets is forbidden"))

	response, body = get(t, s.url+"providers/InfrastructureProvider/capa-system/aws/compare", nil)
	g.Expect(response.code).To(Equal(http.StatusOK))
	g.Expect(body).To(ContainSubstring("This cannot be compared: secrets is forbidden"))
}

// follow opens the stream of updates and returns its events, as "EVENT: DATA".
func (s *site) follow(t *testing.T) <-chan string {
	t.Helper()
	g := NewWithT(t)

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"events", http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = response.Body.Close() })
	g.Expect(response.Header.Get("Content-Type")).To(Equal("text/event-stream"))
	checkHeaders(t, response.Header)

	events := make(chan string, 100)

	go func() {
		defer close(events)

		event := ""

		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			if name, ok := strings.CutPrefix(scanner.Text(), "event: "); ok {
				event = name
			} else if data, ok := strings.CutPrefix(scanner.Text(), "data: "); ok {
				events <- event + ": " + data
			}
		}
	}()

	g.Eventually(events).Should(Receive(Equal("alive: ")))
	g.Eventually(s.feed.Watched).Should(BeTrue())

	return events
}

func TestEvents(t *testing.T) {
	const id = "InfrastructureProvider/capa-system/aws"

	g := NewWithT(t)
	s := newSite(t)
	events := s.follow(t)

	// Changes within a short time are one event.
	s.feed.Changed(id)
	s.feed.Changed(id)
	g.Eventually(events, 5*time.Second).Should(Receive(Equal("changed: " + id)))

	// One that the viewer does not see is not reported.
	s.feed.Changed("InfrastructureProvider/other/hidden")
	s.feed.SetStale("the cluster\ndoes not answer")
	g.Eventually(events, 5*time.Second).Should(Receive(Equal("alive: the cluster does not answer")))

	_, body := get(t, s.url, nil)
	g.Expect(body).To(ContainSubstring("does not answer</p>"), "a page that is opened later shows it as well")

	// One that was deleted concerns all pages, and so do many.
	s.cluster.set(aws("other"))
	s.feed.Changed(id)
	g.Eventually(events, 5*time.Second).Should(Receive(Equal("changed: *")))
}

func TestManyEvents(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t)
	many := make([]v1alpha2.Provider, 500)

	for i := range many {
		many[i] = aws(fmt.Sprintf("aws-%d", i))
	}

	s.cluster.set(many...)
	events := s.follow(t)

	for i := range many {
		s.feed.Changed(fmt.Sprintf("InfrastructureProvider/capa-system/aws-%d", i))
	}

	g.Eventually(events, 5*time.Second).Should(Receive(Equal("changed: *")))
	g.Consistently(events, time.Second).ShouldNot(Receive(HavePrefix("changed")))
}

// TestStreamsAreBounded checks that pages which wait for updates are limited, and freed when they are closed.
func TestStreamsAreBounded(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t)
	ctx, cancel := context.WithCancel(t.Context())

	open := func(ctx context.Context) int {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"events", http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := http.DefaultClient.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = response.Body.Close() })

		return response.StatusCode
	}

	for range 128 {
		g.Expect(open(ctx)).To(Equal(http.StatusOK))
	}

	g.Expect(open(ctx)).To(Equal(http.StatusServiceUnavailable))

	cancel()
	g.Eventually(func() int { return open(t.Context()) }).Should(Equal(http.StatusOK))
	g.Eventually(s.feed.Watched).Should(BeTrue())
}

// TestFirstPaint checks that the overview of 500 providers is rendered fast, and without a request to the cluster.
func TestFirstPaint(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t)
	many := make([]v1alpha2.Provider, 500)

	for i := range many {
		many[i] = aws(fmt.Sprintf("aws-%d", i))
	}

	s.cluster.set(many...)
	s.cluster.err = errors.New("the overview needs nothing but the resources")

	fastest := time.Hour

	for range 5 { // the machine may be busy
		start := time.Now()
		_, body := get(t, s.url, nil)
		fastest = min(fastest, time.Since(start))

		g.Expect(strings.Count(body, `class="card `)).To(Equal(500))
	}

	g.Expect(fastest).To(BeNumerically("<", 300*time.Millisecond))
}
