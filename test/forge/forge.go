// Package forge is a server for tests that looks like GitHub Enterprise, like GitLab and like a
// plain web server at once: what is published is under all their paths. It counts requests, and can
// be stopped and started again at its address.
package forge

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Forge is the server. Set the exported fields before Start.
type Forge struct {
	// Token that requests must carry; empty means none.
	Token string
	// Private hides files from the website's paths, as GitHub does with private projects: the API
	// has them.
	Private bool
	// PerPage is how long a page of the API's lists is; 0 means that all is on one.
	PerPage int

	address  string
	server   *http.Server
	mu       sync.Mutex
	projects map[string][]release // by "owner/name", in the order of publication
	requests []string             // paths
}

type release struct {
	version string
	files   map[string][]byte
}

// Publish makes a release of a project, "owner/name".
func (f *Forge) Publish(project, version string, files map[string][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.projects == nil {
		f.projects = map[string][]release{}
	}

	f.projects[project] = append(f.projects[project], release{version, files})
}

// PublishFolder makes a release of the files in a folder.
func (f *Forge) PublishFolder(project, version, folder string) error {
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

	f.Publish(project, version, files)

	return nil
}

// Start starts the server, the second time and later at the address of the first.
func (f *Forge) Start() error {
	if f.address == "" {
		f.address = "127.0.0.1:0"
	}

	listener, err := net.Listen("tcp", f.address)
	if err != nil {
		return err
	}

	f.address = listener.Addr().String()

	f.server = &http.Server{Handler: f.handler()}
	go func() { _ = f.server.Serve(listener) }()

	return nil
}

// Stop stops the server; what is being answered is cut.
func (f *Forge) Stop() error { return f.server.Close() }

// URL is the server's address, https aside.
func (f *Forge) URL() string { return "http://" + f.address }

// Requests are the paths of the requests so far that contain a text, in order.
func (f *Forge) Requests(part string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()

	return slices.DeleteFunc(slices.Clone(f.requests), func(path string) bool { return !strings.Contains(path, part) })
}

func (f *Forge) handler() http.Handler {
	website, mux := http.NewServeMux(), http.NewServeMux()
	mux.Handle("/", website)
	website.HandleFunc(
		"GET /{owner}/{name}/releases/download/{version}/{file}",
		func(w http.ResponseWriter, r *http.Request) {
			if f.Private {
				http.NotFound(w, r)
				return
			}

			f.file(w, r)
		},
	)
	mux.HandleFunc("GET /plain/{owner}/{name}/{version}/{file}", f.file)
	mux.HandleFunc("GET /goproxy/github.com/{owner}/{name}/@v/list", f.tags)
	mux.HandleFunc("GET /api/v3/repos/{owner}/{name}/releases", f.gitHubReleases)
	mux.HandleFunc("GET /api/v3/repos/{owner}/{name}/releases/tags/{version}", f.gitHubRelease)
	mux.HandleFunc("GET /api/v3/repos/{owner}/{name}/assets/{version}/{file}", f.file)
	mux.HandleFunc("GET /api/v4/projects/{project}/packages", f.gitLabPackages)
	mux.HandleFunc("GET /api/v4/projects/{project}/packages/{id}/package_files", f.gitLabFiles)
	mux.HandleFunc("GET /api/v4/projects/{project}/packages/generic/{package}/{version}/{file}", f.file)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.requests = append(f.requests, r.URL.Path)
		f.mu.Unlock()

		if f.Token != "" && r.Header.Get("Authorization") != "Bearer "+f.Token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}

		mux.ServeHTTP(w, r)
	})
}

// releases are those of the project that the path names, newest first; GitLab's paths have it as
// owner%2Fname.
func (f *Forge) releases(r *http.Request) []release {
	project := r.PathValue("project")
	if project == "" {
		project = r.PathValue("owner") + "/" + r.PathValue("name")
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	found := slices.Clone(f.projects[project])
	slices.Reverse(found)

	return found
}

func (f *Forge) release(r *http.Request) (release, bool) {
	for _, rel := range f.releases(r) {
		if rel.version == r.PathValue("version") {
			return rel, true
		}
	}

	return release{}, false
}

func (f *Forge) file(w http.ResponseWriter, r *http.Request) {
	rel, _ := f.release(r)

	data, found := rel.files[r.PathValue("file")]
	if !found {
		http.NotFound(w, r)
		return
	}

	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(data)
}

func (f *Forge) tags(w http.ResponseWriter, r *http.Request) {
	for _, rel := range f.releases(r) {
		fmt.Fprintln(w, rel.version)
	}
}

// describe describes a release as GitHub's API does, as far as anybody looks.
func (f *Forge) describe(r *http.Request, rel release) map[string]any {
	assets := make([]map[string]string, 0, len(rel.files))
	for name := range rel.files {
		assets = append(assets, map[string]string{
			"name": name,
			"url": fmt.Sprintf(
				"%s/api/v3/repos/%s/%s/assets/%s/%s",
				f.URL(),
				r.PathValue("owner"),
				r.PathValue("name"),
				rel.version,
				name,
			),
		})
	}

	return map[string]any{"tag_name": rel.version, "assets": assets}
}

func (f *Forge) gitHubRelease(w http.ResponseWriter, r *http.Request) {
	rel, found := f.release(r)
	if !found {
		http.NotFound(w, r)
		return
	}

	_ = json.NewEncoder(w).Encode(f.describe(r, rel))
}

func (f *Forge) gitHubReleases(w http.ResponseWriter, r *http.Request) {
	all := f.releases(r)
	if all == nil {
		http.NotFound(w, r)
		return
	}

	list := []any{}

	page, next := f.page(r, len(all))
	for _, rel := range all[page.from:page.to] {
		list = append(list, f.describe(r, rel))
	}

	if next > 0 {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?page=%d>; rel="next", <%[1]s/x>; rel="last"`, f.URL(), r.URL.Path, next))
	}

	_ = json.NewEncoder(w).Encode(list)
}

func (f *Forge) gitLabPackages(w http.ResponseWriter, r *http.Request) {
	all := f.releases(r)
	page, next := f.page(r, len(all))

	list := []any{}
	for i := page.from; i < page.to; i++ {
		list = append(
			list,
			map[string]any{"id": i, "name": "package", "version": all[i].version},
			map[string]any{"id": 1000 + i, "name": "package-of-another", "version": "v99.0.0"},
		)
	}

	if next > 0 {
		w.Header().Set("X-Next-Page", fmt.Sprint(next))
	}

	_ = json.NewEncoder(w).Encode(list)
}

func (f *Forge) gitLabFiles(w http.ResponseWriter, r *http.Request) {
	list := []any{}

	for i, rel := range f.releases(r) {
		if fmt.Sprint(i) == r.PathValue("id") {
			for name := range rel.files {
				list = append(list, map[string]any{"file_name": name})
			}
		}
	}

	_ = json.NewEncoder(w).Encode(list)
}

type span struct{ from, to int }

// page is the part of a list that a request asks for, and the number of the next page; 0 when it is
// the last.
func (f *Forge) page(r *http.Request, length int) (span, int) {
	if f.PerPage == 0 {
		return span{0, length}, 0
	}

	page := 1
	_, _ = fmt.Sscan(r.URL.Query().Get("page"), &page)

	to := page * f.PerPage
	if to >= length {
		return span{min((page-1)*f.PerPage, length), length}, 0
	}

	return span{to - f.PerPage, to}, page + 1
}
