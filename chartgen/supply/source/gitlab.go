package source

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/capstan-project/capstan/chartgen/supply/web"
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
	// packages are the versions of the package; nil before they are listed.
	packages []gitLabPackage
}

// gitLabPackage holds the fields of a package that are used.
type gitLabPackage struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// parseGitLab parses an address of the form gitLabForm. The server may have a relative URL root
// before /api.
func parseGitLab(u *url.URL, options WebOptions) (site *gitLab, version, file string, err error) {
	before, after, _ := strings.Cut(u.EscapedPath(), gitLabAPI)

	parts := strings.Split(after, "/")
	if len(parts) != 6 || parts[1] != "packages" || parts[2] != "generic" {
		return nil, "", "", &AddressError{
			fmt.Sprintf("%s is not the address of a GitLab package; write it as %s", web.RedactURL(u), gitLabForm),
		}
	}

	site = &gitLab{
		connection: connection{
			credentials: options.Credentials,
			guard:       options.Guard,
			server: Server{
				Host:   u.Hostname(),
				TLS:    u.Scheme == "https",
				Tokens: []string{"GITLAB_ACCESS_TOKEN", "gitlab-access-token", "GITLAB_TOKEN"},
			},
			origins: []string{web.Origin(u)},
		},
		project: web.Origin(u) + before + gitLabAPI + parts[0],
		name:    parts[3],
	}

	return site, parts[4], parts[5], nil
}

func (g *gitLab) fileURL(version, name string) string {
	if version == "" {
		return g.project + "/packages/generic/" + g.name
	}

	return g.project + "/packages/generic/" + g.name + "/" + url.PathEscape(version) + "/" + url.PathEscape(name)
}

func (g *gitLab) read(ctx context.Context, version, name string, limit int64) ([]byte, error) {
	res, err := g.get(ctx, g.fileURL(version, name), "", limit)
	if err != nil {
		return nil, err
	}

	return res.Body, nil
}

func (g *gitLab) versions(ctx context.Context) ([]string, error) {
	if err := g.list(ctx); err != nil {
		return nil, err
	}

	versions := make([]string, 0, len(g.packages))
	for _, p := range g.packages {
		versions = append(versions, p.Version)
	}

	return versions, nil
}

// files lists the files of a version's package.
func (g *gitLab) files(ctx context.Context, version string) ([]string, error) {
	if err := g.list(ctx); err != nil {
		return nil, err
	}

	var names []string

	for _, p := range g.packages {
		if p.Version != version {
			continue
		}

		address := fmt.Sprintf("%s/packages/%d/package_files?per_page=100", g.project, p.ID)

		err := g.pages(ctx, address, func(data []byte) error {
			var page []struct {
				Name string `json:"file_name"`
			}

			if err := parseJSON(address, data, &page); err != nil {
				return err
			}

			for _, file := range page {
				names = append(names, file.Name)
			}

			return checkCount(address, "files", len(names))
		})
		if err != nil {
			return nil, err
		}
	}

	return names, nil
}

// list requests the versions of the package, once. The API's filter matches parts of names too.
func (g *gitLab) list(ctx context.Context) error {
	if g.packages != nil {
		return nil
	}

	address := g.project + "/packages?package_type=generic&per_page=100&package_name=" + g.name

	var found []gitLabPackage

	err := g.pages(ctx, address, func(data []byte) error {
		var page []gitLabPackage

		if err := parseJSON(address, data, &page); err != nil {
			return err
		}

		for _, p := range page {
			if url.PathEscape(p.Name) == g.name {
				found = append(found, p)
			}
		}

		return checkCount(address, "versions", len(found))
	})
	if web.IsNotFound(err) {
		return &NotFoundError{Message: err.Error()}
	}

	if err != nil {
		return err
	}

	g.packages = found

	return nil
}

// pages calls add for each page of a list.
func (g *gitLab) pages(ctx context.Context, address string, add func([]byte) error) error {
	next := "1"
	for count := 0; next != "" && count < maxPages; count++ {
		res, err := g.get(ctx, address+"&page="+url.QueryEscape(next), "application/json", maxList)
		if err != nil {
			return err
		}

		if err := add(res.Body); err != nil {
			return err
		}

		next = res.Header.Get("X-Next-Page")
		if _, err := strconv.Atoi(next); err != nil {
			next = "" // the header is empty on the last page
		}
	}

	return nil
}
