// Package fakesource provides a fake download server for tests. It serves the same releases under
// the paths of GitHub Enterprise with its Git repositories, of GitLab and of a plain web server. It counts
// requests, and can be stopped and started again at the same address.
package fakesource

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Server is the fake server. Set its exported fields before Start.
type Server struct {
	// Token is required in requests, unless it is empty.
	Token string
	// Private hides files from the website's paths; only the API serves them, as on GitHub with
	// private projects.
	Private bool
	// NoGit hides the repositories, so that only the API lists releases.
	NoGit bool
	// TLS makes the server use TLS; see CA.
	TLS bool
	// Limited makes GitHub's API answer that its rate limit is exceeded.
	Limited atomic.Bool
	// PerPage is the length of a page in the API's lists; 0 means no paging.
	PerPage int

	address  string
	server   *http.Server
	ca       []byte
	mu       sync.Mutex
	projects map[string][]release // by "owner/name", in the order of publication
	requests []string             // paths
}

type release struct {
	version string
	files   map[string][]byte
}

// Publish adds a release to a project, which is named "owner/name".
func (s *Server) Publish(project, version string, files map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.projects == nil {
		s.projects = map[string][]release{}
	}

	s.projects[project] = append(s.projects[project], release{version, files})
}

// Replace replaces the files of a release.
func (s *Server) Replace(project, version string, files map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for i := range s.projects[project] {
		if s.projects[project][i].version == version {
			s.projects[project][i].files = files
		}
	}
}

// PublishFolder adds a release with the files of a folder to a project.
func (s *Server) PublishFolder(project, version, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}

	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(folder, e.Name())); err != nil {
			return err
		}
	}

	s.Publish(project, version, files)

	return nil
}

// Start starts the server, always at the address that the first start has chosen.
func (s *Server) Start() error {
	if s.address == "" {
		s.address = "127.0.0.1:0"
	}

	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}

	s.address = listener.Addr().String()

	if s.TLS {
		listener = s.encrypt(listener)
	}

	s.server = &http.Server{Handler: s.handler()}
	go func() { _ = s.server.Serve(listener) }()

	return nil
}

// Stop stops the server and closes open connections.
func (s *Server) Stop() error { return s.server.Close() }

// encrypt returns a listener that uses the certificate of httptest's servers.
func (s *Server) encrypt(listener net.Listener) net.Listener {
	server := httptest.NewTLSServer(nil)
	defer server.Close()

	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	return tls.NewListener(listener, &tls.Config{
		Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12,
	})
}

// CA returns the authority of the server's certificate in PEM; nil without TLS. Call it after Start.
func (s *Server) CA() []byte { return s.ca }

// URL returns the server's address.
func (s *Server) URL() string {
	if s.TLS {
		return "https://" + s.address
	}

	return "http://" + s.address
}

// Requests returns the paths of the requests so far that contain part, in order.
func (s *Server) Requests(part string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.DeleteFunc(slices.Clone(s.requests), func(path string) bool { return !strings.Contains(path, part) })
}

func (s *Server) handler() http.Handler {
	website, mux := http.NewServeMux(), http.NewServeMux()
	mux.Handle("/", website)
	website.HandleFunc(
		"GET /{owner}/{name}/releases/download/{version}/{file}",
		func(w http.ResponseWriter, r *http.Request) {
			if s.Private {
				http.NotFound(w, r)
				return
			}

			s.file(w, r)
		},
	)
	website.HandleFunc("GET /{owner}/{repository}/info/refs", s.references)
	mux.HandleFunc("GET /plain/{owner}/{name}/{version}/{file}", s.file)
	mux.HandleFunc("GET /api/v3/repos/{owner}/{name}/releases", s.gitHubReleases)
	mux.HandleFunc("GET /api/v3/repos/{owner}/{name}/releases/tags/{version}", s.gitHubRelease)
	mux.HandleFunc("GET /api/v3/repos/{owner}/{name}/assets/{version}/{file}", s.file)
	mux.HandleFunc("GET /api/v4/projects/{project}/packages", s.gitLabPackages)
	mux.HandleFunc("GET /api/v4/projects/{project}/packages/{id}/package_files", s.gitLabFiles)
	mux.HandleFunc("GET /api/v4/projects/{project}/packages/generic/{package}/{version}/{file}", s.file)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.URL.Path)
		s.mu.Unlock()

		if s.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.Token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}

		if s.Limited.Load() && strings.HasPrefix(r.URL.Path, "/api/v3/") {
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.WriteHeader(http.StatusForbidden)

			return
		}

		mux.ServeHTTP(w, r)
	})
}

// releases returns the releases of the project in the request's path, newest first. In GitLab's
// paths the project is owner%2Fname.
func (s *Server) releases(r *http.Request) []release {
	project := r.PathValue("project")
	if project == "" {
		name := cmp.Or(r.PathValue("name"), strings.TrimSuffix(r.PathValue("repository"), ".git"))
		project = r.PathValue("owner") + "/" + name
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	found := slices.Clone(s.projects[project])
	slices.Reverse(found)

	return found
}

func (s *Server) release(r *http.Request) (release, bool) {
	for _, rel := range s.releases(r) {
		if rel.version == r.PathValue("version") {
			return rel, true
		}
	}

	return release{}, false
}

func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	rel, _ := s.release(r)

	data, found := rel.files[r.PathValue("file")]
	if !found {
		http.NotFound(w, r)
		return
	}

	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(data)
}

// references lists the tags as a Git server does.
func (s *Server) references(w http.ResponseWriter, r *http.Request) {
	all := s.releases(r)
	if s.NoGit || s.Private || all == nil || r.URL.Query().Get("service") != "git-upload-pack" {
		http.NotFound(w, r)
		return
	}

	line := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		fmt.Fprintf(w, "%04x%s", len(text)+len("0000"), text)
	}

	w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	line("# service=git-upload-pack\n")
	fmt.Fprint(w, "0000")

	commit := strings.Repeat("0123456789", 4)
	line("%s HEAD\x00symref=HEAD:refs/heads/main\n", commit)

	for _, rel := range all {
		line("%s refs/tags/%s\n", commit, rel.version)
	}

	fmt.Fprint(w, "0000")
}

// describe returns the parts of GitHub's description of a release that clients use.
func (s *Server) describe(r *http.Request, rel release) map[string]any {
	assets := make([]map[string]string, 0, len(rel.files))
	for name := range rel.files {
		assets = append(assets, map[string]string{
			"name": name,
			"url": fmt.Sprintf(
				"%s/api/v3/repos/%s/%s/assets/%s/%s",
				s.URL(),
				r.PathValue("owner"),
				r.PathValue("name"),
				rel.version,
				name,
			),
		})
	}

	return map[string]any{"tag_name": rel.version, "assets": assets}
}

func (s *Server) gitHubRelease(w http.ResponseWriter, r *http.Request) {
	rel, found := s.release(r)
	if !found {
		http.NotFound(w, r)
		return
	}

	_ = json.NewEncoder(w).Encode(s.describe(r, rel))
}

func (s *Server) gitHubReleases(w http.ResponseWriter, r *http.Request) {
	all := s.releases(r)
	if all == nil {
		http.NotFound(w, r)
		return
	}

	list := []any{}

	page, next := s.page(r, len(all))
	for _, rel := range all[page.from:page.to] {
		list = append(list, s.describe(r, rel))
	}

	s.link(w, r, next)

	_ = json.NewEncoder(w).Encode(list)
}

func (s *Server) gitLabPackages(w http.ResponseWriter, r *http.Request) {
	all := s.releases(r)
	page, next := s.page(r, len(all))

	list := []any{}
	for i := page.from; i < page.to; i++ {
		list = append(
			list,
			map[string]any{"id": i, "name": "package", "version": all[i].version},
			map[string]any{"id": 1000 + i, "name": "package-of-another", "version": "v99.0.0"},
		)
	}

	s.link(w, r, next)

	_ = json.NewEncoder(w).Encode(list)
}

func (s *Server) gitLabFiles(w http.ResponseWriter, r *http.Request) {
	list := []any{}

	for i, rel := range s.releases(r) {
		if fmt.Sprint(i) == r.PathValue("id") {
			for name := range rel.files {
				list = append(list, map[string]any{"file_name": name})
			}
		}
	}

	_ = json.NewEncoder(w).Encode(list)
}

// link sets the header with the address of the next page, if there is one.
func (s *Server) link(w http.ResponseWriter, r *http.Request, next int) {
	if next > 0 {
		w.Header().Set("Link",
			fmt.Sprintf(`<%s%s?page=%d>; rel="next", <%[1]s/x>; rel="last"`, s.URL(), r.URL.EscapedPath(), next))
	}
}

type span struct{ from, to int }

// page returns the part of a list that a request asks for, and the number of the next page; 0 if it
// is the last.
func (s *Server) page(r *http.Request, length int) (span, int) {
	if s.PerPage == 0 {
		return span{0, length}, 0
	}

	page := 1
	_, _ = fmt.Sscan(r.URL.Query().Get("page"), &page)

	to := page * s.PerPage
	if to >= length {
		return span{min((page-1)*s.PerPage, length), length}, 0
	}

	return span{to - s.PerPage, to}, page + 1
}
