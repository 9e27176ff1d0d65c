package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/module"

	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// gitHub is a project's releases on GitHub, on a GitHub Enterprise server, or on a mirror with
// GitHub's paths. Files are taken from the website, which does not count requests; the API is asked
// for what the website does not give: lists, and the files of private projects.
type gitHub struct {
	connection
	// project is the project's address on the website, api its address in the API.
	project, api string
	// listing is the project's address on a Go module proxy; empty when there is none.
	moduleProxy string
	// releases that the API described, by tag.
	releases map[string]*gitHubRelease
}

// gitHubRelease is what matters of the API's description of a release.
type gitHubRelease struct {
	TagName string `json:"tag_name"`
	Draft   bool   `json:"draft"`
	Assets  []struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	} `json:"assets"`
}

const gitHubHost = "github.com"

// maxPages bounds how long a list is: a hundred releases are a page.
const maxPages = 30

func newGitHub(project *url.URL, options WebOptions) *gitHub {
	g := &gitHub{project: project.String(), releases: map[string]*gitHubRelease{}}
	g.credentials, g.server = options.Credentials, Server{
		Host:   project.Hostname(),
		Tokens: []string{"GITHUB_TOKEN", "github-token"},
	}
	folder, name := path.Split(project.Path)
	prefix, owner := path.Split(strings.TrimSuffix(folder, "/"))

	api := *project
	switch host := project.Hostname(); {
	case host == gitHubHost:
		api.Host = "api." + gitHubHost
		g.moduleProxy = moduleProxyURL(options.GoProxy, path.Join(gitHubHost, owner, name))
	case strings.HasSuffix(host, ".ghe.com"):
		api.Host = "api." + api.Host
	default:
		prefix = path.Join(prefix, "api/v3")
	}

	api.Path = path.Join(prefix, "/repos", owner, name)
	g.api = api.String()

	g.origins = []string{web.Origin(&api)}
	if project.Host != gitHubHost { // whose website wants no token, and refuses a wrong one
		g.origins = append(g.origins, web.Origin(project))
	}

	return g
}

func (g *gitHub) fileURL(version, name string) string {
	if version == "" {
		return g.project + "/releases"
	}

	return g.project + "/releases/download/" + url.PathEscape(version) + "/" + url.PathEscape(name)
}

// read gets a file from the website and, where it is not found there, with a token from the API:
// the website hides what is private.
func (g *gitHub) read(ctx context.Context, version, name string, limit int64) ([]byte, error) {
	res, err := g.get(ctx, g.fileURL(version, name), "", limit)

	var status *web.StatusError
	if err != nil && g.token && errors.As(err, &status) && (web.IsNotFound(err) || status.IsDenied()) {
		return g.readAsset(ctx, version, name, limit, err)
	}

	if err != nil {
		return nil, err
	}

	return res.Body, nil
}

// readAsset gets a file through the API; notFound is the error when the release has none of that
// name.
func (g *gitHub) readAsset(ctx context.Context, version, name string, limit int64, notFound error) ([]byte, error) {
	release, err := g.getRelease(ctx, version)
	if web.IsNotFound(err) {
		return nil, notFound
	}

	if err != nil {
		return nil, err
	}

	for _, asset := range release.Assets {
		if asset.Name == name {
			res, err := g.get(ctx, asset.URL, "application/octet-stream", limit)
			if err != nil {
				return nil, g.explainToken(err)
			}

			return res.Body, nil
		}
	}

	return nil, notFound
}

func (g *gitHub) files(ctx context.Context, version string) ([]string, error) {
	release, err := g.getRelease(ctx, version)
	if err != nil {
		return nil, err
	}

	names := make([]string, 0, len(release.Assets))
	for _, asset := range release.Assets {
		names = append(names, asset.Name)
	}

	return names, nil
}

// release asks the API for a release, once.
func (g *gitHub) getRelease(ctx context.Context, tag string) (*gitHubRelease, error) {
	if known := g.releases[tag]; known != nil {
		return known, nil
	}

	release := &gitHubRelease{}
	if _, err := g.getJSON(ctx, g.api+"/releases/tags/"+url.PathEscape(tag), release); err != nil {
		return nil, err
	}

	g.releases[tag] = release

	return release, nil
}

// versions lists the project's tags from a Go module proxy, as clusterctl does, and its releases
// from the API where that fails.
func (g *gitHub) versions(ctx context.Context) ([]string, error) {
	if g.moduleProxy != "" {
		if versions, err := g.listTags(ctx); err == nil && len(versions) > 0 {
			return versions, nil
		}
	}

	var versions []string

	next := g.api + "/releases?per_page=100"
	for page := 0; next != "" && page < maxPages; page++ {
		var releases []gitHubRelease

		header, err := g.getJSON(ctx, next, &releases)
		if web.IsNotFound(err) {
			return nil, &NotFoundError{
				Message: fmt.Sprintf(
					"%v; if the project exists, the server cannot list its versions: set spec.version to an exact version such as v1.13.5",
					err,
				),
			}
		}

		if err != nil {
			return nil, err
		}

		for _, r := range releases {
			if !r.Draft {
				versions = append(versions, r.TagName)
			}
		}

		next = g.nextPage(header)
	}

	return versions, nil
}

// nextLink finds the next page in the header Link.
var nextLink = regexp.MustCompile(`<([^>]*)>;\s*rel="next"`)

// nextPage is the address of the next page; empty at the end, or when it is not on the same server.
func (g *gitHub) nextPage(header http.Header) string {
	match := nextLink.FindStringSubmatch(header.Get("Link"))
	if match == nil {
		return ""
	}

	next, err := url.Parse(match[1])
	if err != nil || web.Origin(next) != g.origins[0] {
		return ""
	}

	return next.String()
}

// ask asks the API and reads its JSON.
func (g *gitHub) getJSON(ctx context.Context, address string, into any) (http.Header, error) {
	res, err := g.get(ctx, address, "application/vnd.github+json", maxList)
	if err != nil {
		return nil, g.explainToken(err)
	}

	return res.Header, parseJSON(address, res.Body, into)
}

// InvalidTokenError says that a server refuses the token it was given.
type InvalidTokenError struct{ err error }

func (e *InvalidTokenError) Error() string {
	return fmt.Sprintf("%v; the token (GITHUB_TOKEN, or token, in the Secret) is wrong or has expired", e.err)
}

func (e *InvalidTokenError) Unwrap() error { return e.err }

func (g *gitHub) explainToken(err error) error {
	var status *web.StatusError
	if errors.As(err, &status) && status.Status == http.StatusUnauthorized && g.token {
		return &InvalidTokenError{err}
	}

	return err
}

// listTags lists a module's versions, those of its major versions from 2 on being modules of their
// own, until one has none.
func (g *gitHub) listTags(ctx context.Context) ([]string, error) {
	var versions []string

	proxy := connection{} // no credentials are for it

	for major := 1; major < maxPages; major++ {
		address := g.moduleProxy
		if major > 1 {
			address += fmt.Sprintf("/v%d", major)
		}

		res, err := proxy.get(ctx, address+"/@v/list", "", maxList)
		if web.IsNotFound(err) || err == nil && len(res.Body) == 0 && major > 1 {
			break
		}

		if err != nil {
			return nil, err
		}

		for line := range strings.FieldsSeq(string(res.Body)) {
			versions = append(versions, strings.TrimSuffix(line, "+incompatible"))
		}
	}

	return versions, nil
}

// goProxyList is where the first proxy in a value of GOPROXY has a module; empty when it names none
// before "direct" or "off".
func moduleProxyURL(goProxy, modulePath string) string {
	escaped, err := module.EscapePath(modulePath)
	if err != nil {
		return ""
	}

	if goProxy == "" {
		goProxy = "https://proxy.golang.org"
	}

	for entry := range strings.FieldsFuncSeq(goProxy, func(r rune) bool { return r == ',' || r == '|' }) {
		switch entry = strings.TrimSpace(entry); {
		case entry == "direct", entry == "off":
			return ""
		case entry != "" && !strings.Contains(entry, ":/") && !filepath.IsAbs(entry):
			entry = "https://" + entry
			fallthrough
		case strings.HasPrefix(entry, "http"):
			return strings.TrimSuffix(entry, "/") + "/" + escaped
		}
	}

	return ""
}

// readJSON reads what a server's API answered.
func parseJSON(address string, data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return &web.ContentError{URL: address, Reason: "is not the JSON that it should be; is this the API of such a server?"}
	}

	return nil
}
