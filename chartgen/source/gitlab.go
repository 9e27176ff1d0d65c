package source

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/transport"
)

// gitLabAPI is the part of an address that identifies GitLab.
const gitLabAPI = "/api/v4/projects/"

// gitLabForm is the form of the address in clusterctl's configuration.
const gitLabForm = "https://HOST/api/v4/projects/PROJECT/packages/generic/PACKAGE/VERSION/FILE"

// gitLab is the site of a generic package of a project on any GitLab server.
type gitLab struct {
	connection
	// project is the address of the project in the API.
	project string
	// name of the package, escaped for URLs.
	name string
}

// gitLabPackage holds the fields of a package that are used.
type gitLabPackage struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// parseGitLab parses an address of the form gitLabForm. The server may have a relative URL root
// before /api.
func parseGitLab(u *url.URL, options OptionsFunc) (at *gitLab, version, file string, err error) {
	before, after, _ := strings.Cut(u.EscapedPath(), gitLabAPI)

	parts := strings.Split(after, "/")
	if len(parts) != 6 || parts[1] != "packages" || parts[2] != "generic" {
		return nil, "", "", &transport.Error{
			Kind: transport.Refused, Place: transport.RedactURL(u), Problem: "it is not the address of a GitLab package",
			Fix: "write it as " + gitLabForm,
		}
	}

	at = &gitLab{
		connection: newConnection(u, options, "GITLAB_ACCESS_TOKEN", "gitlab-access-token", "GITLAB_TOKEN"),
		project:    transport.Origin(u) + before + gitLabAPI + parts[0],
		name:       parts[3],
	}

	return at, parts[4], parts[5], nil
}

func (g *gitLab) fileURL(version, name string) string {
	if version == "" {
		return g.project + "/packages/generic/" + g.name
	}

	return g.project + "/packages/generic/" + g.name + "/" + url.PathEscape(version) + "/" + url.PathEscape(name)
}

func (g *gitLab) read(ctx context.Context, version, name string, limit int64) ([]byte, error) {
	return g.download(ctx, g.fileURL(version, name), limit)
}

func (g *gitLab) versions(ctx context.Context) ([]string, error) {
	packages, err := g.packages(ctx)

	versions := make([]string, 0, len(packages))
	for _, p := range packages {
		versions = append(versions, p.Version)
	}

	return versions, err
}

// files lists the files of a version's package.
func (g *gitLab) files(ctx context.Context, version string) ([]string, error) {
	packages, err := g.packages(ctx)
	if err != nil {
		return nil, err
	}

	names := []string{}

	for _, p := range packages {
		if p.Version != version {
			continue
		}

		files, err := gitLabList[struct {
			Name string `json:"file_name"`
		}](ctx, g, fmt.Sprintf("/packages/%d/package_files?per_page=100", p.ID))
		if err != nil {
			return nil, err
		}

		for _, file := range files {
			names = append(names, file.Name)
		}
	}

	return names, nil
}

// packages lists the versions of the package. The API's filter matches parts of names too.
func (g *gitLab) packages(ctx context.Context) ([]gitLabPackage, error) {
	found, err := gitLabList[gitLabPackage](ctx, g, "/packages?package_type=generic&per_page=100&package_name="+g.name)

	return slices.DeleteFunc(found, func(p gitLabPackage) bool { return url.PathEscape(p.Name) != g.name }), err
}

// gitLabList requests a list of the project from the API.
func gitLabList[T any](ctx context.Context, g *gitLab, path string) ([]T, error) {
	own := func(address *url.URL) bool { return transport.Origin(address) == g.origins[0] }

	return list[T](ctx, g.project+path, own, func(ctx context.Context, address string) (*transport.Response, error) {
		return g.get(ctx, address, "application/json", maxList)
	})
}
