package source

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/fakesource"
)

func TestGitHubAPIAddress(t *testing.T) {
	for project, want := range map[string]struct {
		api     string
		origins []string
	}{
		"https://github.com/o/r": {
			api:     "https://api.github.com/repos/o/r",
			origins: []string{"https://api.github.com"},
		},
		"https://github.com/MyOrg/r": {
			api:     "https://api.github.com/repos/MyOrg/r",
			origins: []string{"https://api.github.com"},
		},
		"https://us.ghe.com/o/r": {
			api:     "https://api.us.ghe.com/repos/o/r",
			origins: []string{"https://api.us.ghe.com", "https://us.ghe.com"},
		},
		"https://git.example.com/o/r": {
			api:     "https://git.example.com/api/v3/repos/o/r",
			origins: []string{"https://git.example.com", "https://git.example.com"},
		},
		"https://mirror/cache/gh/o/r/": {
			api:     "https://mirror/cache/gh/api/v3/repos/o/r",
			origins: []string{"https://mirror", "https://mirror"},
		},
	} {
		w, err := NewWebsite(strings.TrimSuffix(project, "/")+"/releases", core, nil)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())

		site := w.Place.(*website).site.(*gitHub)
		g.Expect(site.api).To(Equal(want.api))
		g.Expect(site.origins).To(Equal(want.origins))
	}
}

// TestListFromRepository checks that a list takes one request to the repository, and that of tags which are
// no complete version nothing is listed.
func TestListFromRepository(t *testing.T) {
	g := NewWithT(t)
	f := newServer(t, nil)
	f.Publish("owner/tiny", "v1", nil)
	f.Publish("owner/tiny", "api/v9.9.9", nil)

	w, err := NewWebsite(f.URL()+"/owner/tiny/releases", infrastructure, nil)
	g.Expect(err).NotTo(HaveOccurred())

	versions, err := w.Versions(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(versions).To(HaveExactElements(HaveField("Name", "v1.3.0"), HaveField("Name", "v1.2.0-rc.1"),
		HaveField("Name", "v1.1.0"), HaveField("Name", "v1.0.0")))
	g.Expect(f.Requests("")).To(HaveExactElements("/owner/tiny.git/info/refs"))
}

// refuse returns a handler that answers everything below a path with a status.
func refuse(status int, path string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, path) {
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.WriteHeader(status)

			return
		}

		next.ServeHTTP(w, r)
	})
}

func TestWebsiteWithoutAPI(t *testing.T) {
	g := NewWithT(t)
	files := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "content of "+filepath.Base(r.URL.Path))
	})
	server := httptest.NewServer(refuse(http.StatusForbidden, "/api/", files))
	t.Cleanup(server.Close)
	w, err := NewWebsite(server.URL+"/o/r/releases/latest/infrastructure-components.yaml", infrastructure, nil)
	g.Expect(err).NotTo(HaveOccurred())
	b, err := w.Fetch(t.Context(), w.exact("v1.0.0"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(b.Components)).To(Equal("content of infrastructure-components.yaml"))
	g.Expect(templateNames(b)).To(HaveExactElements(defaultTemplate))

	_, err = w.Resolve(t.Context(), Request{})
	g.Expect(err).To(HaveField("Until", Not(BeZero())))
	g.Expect(IsUnavailable(err)).To(BeTrue())
}

// TestDeletedProject: github.com answers so for a project that was deleted, as one of clusterctl's list was.
func TestDeletedProject(t *testing.T) {
	const repository, api = "/o/r.git/info/refs", "/repos/o/r/releases"

	missing := map[string]int{repository: http.StatusUnauthorized, api: http.StatusNotFound}
	limited := map[string]int{repository: http.StatusUnauthorized, api: http.StatusForbidden}
	firewall := map[string]int{repository: http.StatusForbidden, api: http.StatusForbidden}

	const gone = "/o/r: there is no such public project, or not any more; set spec.fetchConfig.url to where the " +
		"provider is now or, if the project is private, give a token"

	for name, c := range map[string]struct {
		answers      map[string]int
		list, exact  string
		options      OptionsFunc
		requestsList int
	}{
		"deleted":                         {answers: missing, list: gone, exact: gone, requestsList: 1},
		"deleted, and the API is used up": {answers: limited, list: gone, exact: gone, requestsList: 1},
		"deleted, with a token": {
			answers: missing, options: withToken("t0ken"), requestsList: 2,
			list:  "there is no such project, or the server cannot list its versions",
			exact: "the server answers 404 Not Found",
		},
		"not allowed by a firewall": {
			answers: firewall, requestsList: 2,
			list: "the server answers 403 Forbidden", exact: "the server answers 404 Not Found",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			requests := 0

			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++

				w.WriteHeader(cmp.Or(c.answers[r.URL.Path], http.StatusNotFound))
			}))
			t.Cleanup(server.Close)

			const address = "https://github.com/o/r/releases/latest/infrastructure-components.yaml"

			w, err := NewWebsite(address, infrastructure, c.options)
			g.Expect(err).NotTo(HaveOccurred())

			site := w.Place.(*website).site.(*gitHub)
			site.project, site.api, site.origins = server.URL+"/o/r", server.URL+"/repos/o/r", []string{server.URL}

			_, err = w.Versions(t.Context())
			g.Expect(err).To(MatchError(ContainSubstring(c.list)))
			g.Expect(requests).To(Equal(c.requestsList))

			_, err = w.Fetch(t.Context(), w.exact("v1.0.0"))
			g.Expect(IsNotFound(err)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring(c.exact)))
		})
	}
}

func TestInvalidTokenError(t *testing.T) {
	g := NewWithT(t)
	f := newServer(t, func(f *fakesource.Server) { f.Token = "right" })
	w, err := NewWebsite(f.URL()+"/owner/tiny/releases", infrastructure, withToken("wrong"))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = w.Versions(t.Context())
	g.Expect(transport.Is(err, transport.InvalidToken)).To(BeTrue())
	g.Expect(err).To(MatchError(And(ContainSubstring("is wrong, has expired"), Not(ContainSubstring("right")))))
}

func TestAssetsOfOtherServersAreNotRead(t *testing.T) {
	g := NewWithT(t)
	asked := 0
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(inner.Close)

	release := fmt.Sprintf(`{"tag_name": "v1.0.0", "assets": [{"name": "metadata.yaml", "url": %q}]}`, inner.URL+"/inner")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			_, _ = fmt.Fprint(w, release)
			return
		}

		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)

	w, err := NewWebsite(server.URL+"/o/r/releases", infrastructure, withToken("t0ken"))
	g.Expect(err).NotTo(HaveOccurred())

	_, err = w.Files(t.Context(), w.exact("v1.0.0"))
	g.Expect(IsNotFound(err)).To(BeTrue())
	g.Expect(asked).To(BeZero())
}
