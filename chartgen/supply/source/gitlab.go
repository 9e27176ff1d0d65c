package source

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// gitLab is a generic package of a project on any GitLab server.
type gitLab struct {
	connection
	// project is the project's address in the API.
	project string
	// name of the package.
	name string
	// packages of that name, once listed.
	packages []gitLabPackage
}

// gitLabPackage is what matters of the API's description of a package.
type gitLabPackage struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// gitLabForm is how clusterctl writes the address of such a source.
const gitLabForm = "https://HOST/api/v4/projects/PROJECT/packages/generic/PACKAGE/VERSION/FILE"

// parseGitLab takes an address of the form above apart; a relative URL root before /api is kept.
func parseGitLab(u *url.URL, options WebOptions) (site *gitLab, version, file string, err error) {
	before, after, _ := strings.Cut(u.EscapedPath(), gitLabAPI)

	parts := strings.Split(after, "/")
	if len(parts) != 6 || parts[1] != "packages" || parts[2] != "generic" {
		return nil, "", "", &AddressError{
			fmt.Sprintf("%s is not the address of a GitLab package; write it as %s", web.RedactURL(u), gitLabForm),
		}
	}

	project := web.Origin(u) + before + gitLabAPI + parts[0]
	server := Server{Host: u.Hostname(), Tokens: []string{"GITLAB_ACCESS_TOKEN", "gitlab-access-token", "GITLAB_TOKEN"}}
	site = &gitLab{
		project:    project,
		name:       parts[3],
		connection: connection{credentials: options.Credentials, server: server, origins: []string{web.Origin(u)}},
	}

	return site, parts[4], parts[5], nil
}

const gitLabAPI = "/api/v4/projects/"

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

			err := parseJSON(address, data, &page)
			for _, file := range page {
				names = append(names, file.Name)
			}

			return err
		})
		if err != nil {
			return nil, err
		}
	}

	return names, nil
}

// list asks for the packages, once. The API's filter by name takes parts of names too.
func (g *gitLab) list(ctx context.Context) error {
	if g.packages != nil {
		return nil
	}

	address := g.project + "/packages?package_type=generic&per_page=100&package_name=" + g.name

	var found []gitLabPackage

	err := g.pages(ctx, address, func(data []byte) error {
		var page []gitLabPackage

		err := parseJSON(address, data, &page)
		for _, p := range page {
			if url.PathEscape(p.Name) == g.name {
				found = append(found, p)
			}
		}

		return err
	})
	if web.IsNotFound(err) {
		return &NotFoundError{Message: err.Error()}
	}

	g.packages = found

	return err
}

// pages gets all pages of a list.
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

		if next = res.Header.Get("X-Next-Page"); next != "" {
			if _, err := strconv.Atoi(next); err != nil {
				return nil //nolint:nilerr // what is not a number is no page
			}
		}
	}

	return nil
}
