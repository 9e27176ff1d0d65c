package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/supply/ranges"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

const gitHubHost = "github.com"

// maxPages is the maximum number of pages of a list. A page has a hundred entries.
const maxPages = 30

// gitHub is the site of a project's releases on GitHub, a GitHub Enterprise server, or a mirror with
// the same paths. Files come from the website, and versions from the repository; neither has a rate limit.
// The API is used for what they lack: the names of files, and private projects.
type gitHub struct {
	connection
	// project is the address of the project on the website.
	project string
	// api is the address of the project in the API.
	api string
	// releases holds what the API returned, by tag.
	releases map[string]*gitHubRelease
}

// gitHubRelease holds the fields of a release that are used.
type gitHubRelease struct {
	TagName string `json:"tag_name"`
	Draft   bool   `json:"draft"`
	Assets  []struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	} `json:"assets"`
}

// newGitHub returns the site of a project by its address on the website.
func newGitHub(project *url.URL, options WebOptions) *gitHub {
	g := &gitHub{
		connection: connection{
			credentials: options.Credentials,
			guard:       options.Guard,
			server: Server{
				Host:   project.Hostname(),
				TLS:    project.Scheme == "https",
				Tokens: []string{"GITHUB_TOKEN", "github-token"},
			},
		},
		project:  project.String(),
		releases: map[string]*gitHubRelease{},
	}

	folder, name := path.Split(project.Path)
	prefix, owner := path.Split(strings.TrimSuffix(folder, "/"))
	api := *project

	switch host := project.Hostname(); {
	case host == gitHubHost:
		api.Host = "api." + gitHubHost
	case strings.HasSuffix(host, ".ghe.com"):
		api.Host = "api." + api.Host
	default:
		prefix = path.Join(prefix, "api/v3")
	}

	api.Path = path.Join(prefix, "/repos", owner, name)
	g.api = api.String()

	// the website of github.com needs no token, and refuses requests with a wrong one
	g.origins = []string{web.Origin(&api)}
	if project.Host != gitHubHost {
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

// read downloads a file from the website. If there is a token and the website does not have the
// file, it tries the API: the website hides the files of private projects.
func (g *gitHub) read(ctx context.Context, version, name string, limit int64) ([]byte, error) {
	res, err := g.get(ctx, g.fileURL(version, name), "", limit)

	var status *web.StatusError
	if g.hasToken && errors.As(err, &status) && (web.IsNotFound(err) || status.IsDenied()) {
		return g.readAsset(ctx, version, name, limit, err)
	}

	if err != nil {
		return nil, err
	}

	return res.Body, nil
}

// readAsset downloads a file through the API. It returns notFound if the release has no such file.
func (g *gitHub) readAsset(ctx context.Context, version, name string, limit int64, notFound error) ([]byte, error) {
	release, err := g.release(ctx, version)
	if web.IsNotFound(err) {
		return nil, notFound
	}

	if err != nil {
		return nil, err
	}

	for _, asset := range release.Assets {
		if asset.Name != name {
			continue
		}

		// The answer of a server must not choose what else is requested.
		address, err := url.Parse(asset.URL)
		if err != nil || web.Origin(address) != g.origins[0] {
			return nil, notFound
		}

		res, err := g.get(ctx, asset.URL, "application/octet-stream", limit)
		if err != nil {
			return nil, g.explainToken(err)
		}

		return res.Body, nil
	}

	return nil, notFound
}

func (g *gitHub) files(ctx context.Context, version string) ([]string, error) {
	release, err := g.release(ctx, version)
	if err != nil {
		return nil, err
	}

	names := make([]string, 0, len(release.Assets))
	for _, asset := range release.Assets {
		names = append(names, asset.Name)
	}

	return names, checkCount(g.fileURL(version, ""), "files", len(names))
}

// release returns what the API knows about a release. It requests each release once.
func (g *gitHub) release(ctx context.Context, tag string) (*gitHubRelease, error) {
	if cached := g.releases[tag]; cached != nil {
		return cached, nil
	}

	release := &gitHubRelease{}
	if _, err := g.getJSON(ctx, g.api+"/releases/tags/"+url.PathEscape(tag), release); err != nil {
		return nil, err
	}

	g.releases[tag] = release

	return release, nil
}

// versions lists the tags of the project's repository. If that fails, as for private projects of github.com, it lists
// the releases from the API.
func (g *gitHub) versions(ctx context.Context) ([]string, error) {
	if versions, err := g.tags(ctx); err == nil && len(versions) > 0 {
		return versions, nil
	}

	return g.listReleases(ctx)
}

// tags lists the tags of the project's repository that are complete versions. Tags such as v1 move with
// each release.
func (g *gitHub) tags(ctx context.Context) ([]string, error) {
	res, err := g.get(ctx, gitRefsURL(g.project), "", maxList)
	if err != nil {
		return nil, err
	}

	tags, err := parseGitTags(res.Body)
	if err == nil {
		err = checkCount(g.project, "tags", len(tags))
	}

	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(tags, func(tag string) bool { return !ranges.IsExact(tag) }), nil
}

// listReleases lists the tags of the project's releases from the API.
func (g *gitHub) listReleases(ctx context.Context) ([]string, error) {
	var versions []string

	next := g.api + "/releases?per_page=100"
	for page := 0; next != "" && page < maxPages; page++ {
		var releases []gitHubRelease

		header, err := g.getJSON(ctx, next, &releases)
		if web.IsNotFound(err) {
			return nil, &NotFoundError{
				Message: fmt.Sprintf(
					"%v; if the project exists, the server cannot list its versions: "+
						"set spec.version to an exact version such as v1.13.5",
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

// nextLink matches the address of the next page in a Link header.
var nextLink = regexp.MustCompile(`<([^>]*)>;\s*rel="next"`)

// nextPage returns the address of the next page of a list. It is empty on the last page, and if the
// address is on another server.
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

// getJSON sends a request to the API and decodes the response.
func (g *gitHub) getJSON(ctx context.Context, address string, into any) (http.Header, error) {
	res, err := g.get(ctx, address, "application/vnd.github+json", maxList)
	if err != nil {
		return nil, g.explainToken(err)
	}

	return res.Header, parseJSON(address, res.Body, into)
}

// explainToken returns an *InvalidTokenError if the API refuses the token, otherwise err.
func (g *gitHub) explainToken(err error) error {
	var status *web.StatusError
	if errors.As(err, &status) && status.Status == http.StatusUnauthorized && g.hasToken {
		return &InvalidTokenError{err: err, message: fmt.Sprintf("%s answers %d %s: the token is wrong or has expired; "+
			"replace token or GITHUB_TOKEN in the Secret of spec.fetchConfig.secretRef, or GITHUB_TOKEN in the provider's "+
			"variables or in the environment", status.URL, status.Status, http.StatusText(status.Status))}
	}

	return err
}
