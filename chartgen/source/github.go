package source

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/chartgen/transport"
)

const gitHubHost = "github.com"

// gitHub is the site of a project's releases on GitHub, a GitHub Enterprise server, or a mirror with
// the same paths. Files come from the website, and versions from the repository; neither has a rate limit.
// The API is used for what they lack: the names of files, and private projects.
type gitHub struct {
	connection
	// project is the address of the project on the website.
	project string
	// api is the address of the project in the API.
	api string
	// release is what the API returned last.
	release gitHubRelease
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

// parseGitHub parses the address of a project, or of a page or file of its releases.
func parseGitHub(u *url.URL, parts []string, options OptionsFunc) (at *gitHub, version, file string) {
	end := cmp.Or(max(slices.Index(parts, "releases"), 0), len(parts))

	for _, part := range parts[min(end+1, len(parts)):] {
		switch {
		case part == "latest", part == "download", part == "tag":
		case strings.HasSuffix(part, ".yaml"):
			file = part
		default:
			version = part
		}
	}

	project := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/" + path.Join(parts[:end]...)}

	return newGitHub(project, options), version, file
}

// newGitHub returns the site of a project by its address on the website.
func newGitHub(project *url.URL, options OptionsFunc) *gitHub {
	g := &gitHub{
		connection: newConnection(project, options, "GITHUB_TOKEN", "github-token"),
		project:    project.String(),
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
	if project.Host == gitHubHost {
		g.origins = nil
	}

	g.origins = append([]string{transport.Origin(&api)}, g.origins...)

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
	data, err := g.download(ctx, g.fileURL(version, name), limit)

	if !g.hasToken || !IsNotFound(err) && !transport.Is(err, transport.Denied) {
		return data, g.explain(ctx, err)
	}

	if releaseErr := g.find(ctx, version); IsNotFound(releaseErr) {
		return nil, err
	} else if releaseErr != nil {
		return nil, releaseErr
	}

	for _, asset := range g.release.Assets {
		// The answer of a server must not choose what else is requested.
		if address, parseErr := url.Parse(asset.URL); asset.Name == name && parseErr == nil && g.isAPI(address) {
			res, err := g.request(ctx, asset.URL, "application/octet-stream", limit)
			if err != nil {
				return nil, err
			}

			return res.Body, nil
		}
	}

	return nil, err
}

func (g *gitHub) files(ctx context.Context, version string) ([]string, error) {
	if err := g.find(ctx, version); err != nil {
		return nil, err
	}

	names := make([]string, 0, len(g.release.Assets))
	for _, asset := range g.release.Assets {
		names = append(names, asset.Name)
	}

	return names, checkCount(g.fileURL(version, ""), "files", len(names))
}

// find requests a release from the API, unless that was the last one.
func (g *gitHub) find(ctx context.Context, tag string) error {
	if g.release.TagName == tag {
		return nil
	}

	address := g.api + "/releases/tags/" + url.PathEscape(tag)

	res, err := g.request(ctx, address, gitHubJSON, maxList)
	if err != nil {
		return err
	}

	g.release = gitHubRelease{}

	return parseJSON(address, res.Body, &g.release)
}

// explain returns why github.com lacks a public file: its project may be the reason. A mirror need not have the
// repository.
func (g *gitHub) explain(ctx context.Context, err error) error {
	if g.server.Host != gitHubHost || !IsNotFound(err) {
		return err
	}

	if _, tagsErr := g.tags(ctx); isNoRepository(tagsErr) {
		return g.noProject(tagsErr)
	}

	return err
}

// isNoRepository reports whether a server has answered that it has no such repository. github.com asks for credentials
// then, as for a private one.
func isNoRepository(err error) bool {
	var answer *transport.Error

	return errors.As(err, &answer) && (answer.Kind == transport.NotFound || answer.Status == http.StatusUnauthorized)
}

// noProject returns the error of a project that cannot be read without a token.
func (g *gitHub) noProject(err error) error {
	return &transport.Error{
		Kind: transport.NotFound, Place: g.project,
		Problem: "there is no such public project, or not any more",
		Fix:     "set spec.fetchConfig.url to where the provider is now or, if the project is private, give a token",
		Err:     err,
	}
}

// versions lists the tags of the project's repository. If that fails, as for private projects of github.com, it lists
// the releases from the API.
func (g *gitHub) versions(ctx context.Context) ([]string, error) {
	versions, err := g.tags(ctx)
	if err == nil && len(versions) > 0 {
		return versions, nil
	}

	// Without a token, the API does not have it either, and may refuse to say so.
	if g.server.Host == gitHubHost && !g.hasToken && isNoRepository(err) {
		return nil, g.noProject(err)
	}

	releases, err := list[gitHubRelease](ctx, g.api+"/releases?per_page=100", g.isAPI, func(
		ctx context.Context, address string,
	) (*transport.Response, error) {
		return g.request(ctx, address, gitHubJSON, maxList)
	})
	if IsNotFound(err) {
		return nil, &transport.Error{
			Kind: transport.NotFound, Place: g.project,
			Problem: "there is no such project, or the server cannot list its versions",
			Fix:     "correct the address, or set spec.version to an exact version such as v1.13.5",
			Err:     err,
		}
	}

	versions = nil

	for _, r := range releases {
		if !r.Draft {
			versions = append(versions, r.TagName)
		}
	}

	return versions, err
}

// tags lists the tags of the project's repository that are complete versions. Tags such as v1 move with
// each release.
func (g *gitHub) tags(ctx context.Context) ([]string, error) {
	answer, err := g.download(ctx, gitRefsURL(g.project), maxList)
	if err != nil {
		return nil, err
	}

	tags, err := parseGitTags(answer)

	return slices.DeleteFunc(tags, func(tag string) bool { return !ranges.IsExact(tag) }), err
}

const gitHubJSON = "application/vnd.github+json"

// isAPI reports whether an address is on the server of the API.
func (g *gitHub) isAPI(address *url.URL) bool { return transport.Origin(address) == g.origins[0] }

// request sends a request to the API. The error is of the kind InvalidToken if the server refuses the token.
func (g *gitHub) request(ctx context.Context, address, accept string, limit int64) (*transport.Response, error) {
	res, err := g.get(ctx, address, accept, limit)

	var denied *transport.Error
	if !g.hasToken || !errors.As(err, &denied) || denied.Kind != transport.Denied {
		return res, err
	}

	return nil, &transport.Error{
		Kind: transport.InvalidToken, Place: denied.Place,
		Problem: denied.Problem + ": the GitHub token is wrong, has expired or may not read this",
		Fix: "replace GITHUB_TOKEN, or the key token, where it is set: in the Secret of spec.fetchConfig.secretRef, in the " +
			"provider's variables, or in the environment",
		Err: err,
	}
}
