package source

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/capstan-project/capstan/chartgen/supply/gitrefs"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// versions lists the project's tags: from a module proxy, if there is one, or else from its repository.
// If that fails, as for private projects of github.com, it lists the releases from the API.
func (g *gitHub) versions(ctx context.Context) ([]string, error) {
	if g.module != nil {
		if versions, err := g.module.versions(ctx); err == nil && len(versions) > 0 {
			return versions, nil
		}
	}

	if versions, err := g.tags(ctx); err == nil && len(versions) > 0 {
		return versions, nil
	}

	return g.listReleases(ctx)
}

// tags lists the tags of the project's repository that are complete versions. Tags such as v1 move with
// each release.
func (g *gitHub) tags(ctx context.Context) ([]string, error) {
	res, err := g.get(ctx, gitrefs.URL(g.project), "", maxList)
	if err != nil {
		return nil, err
	}

	tags, err := gitrefs.Tags(res.Body)
	if err == nil {
		err = checkCount(g.project, "tags", len(tags))
	}

	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(tags, func(tag string) bool { return !IsExact(tag) }), nil
}

// goModule lists the tags of a project on a Go module proxy, which a network without access to the project's
// server may have.
type goModule struct {
	// url of the module on the proxy.
	url string
}

// newGoModule returns the module on the first proxy in a value of GOPROXY, or nil if there is none
// before "direct" or "off", or none at all.
func newGoModule(goProxy, modulePath string) *goModule {
	escaped, err := module.EscapePath(modulePath)
	if err != nil {
		return nil
	}

	for entry := range strings.FieldsFuncSeq(goProxy, func(r rune) bool { return r == ',' || r == '|' }) {
		entry = strings.TrimSpace(entry)
		if entry == "direct" || entry == "off" {
			return nil
		}

		if proxy := proxyURL(entry); proxy != "" {
			return &goModule{url: proxy + "/" + escaped}
		}
	}

	return nil
}

// proxyURL returns the URL of an entry of GOPROXY, which may lack its scheme. It is empty for entries
// that are not http or https, such as files.
func proxyURL(entry string) string {
	if entry != "" && !strings.Contains(entry, ":/") && !filepath.IsAbs(entry) {
		entry = "https://" + entry
	}

	if !strings.HasPrefix(entry, "http") {
		return ""
	}

	return strings.TrimSuffix(entry, "/")
}

// versions lists the module's versions. Major versions from v2 on are modules of their own; they are
// listed up to the first one without versions.
func (m *goModule) versions(ctx context.Context) ([]string, error) {
	var versions []string

	proxy := connection{} // without credentials, which are for GitHub

	for major := 1; major < maxPages; major++ {
		address := m.url
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
			if err := checkCount(address, "versions", len(versions)); err != nil {
				return nil, err
			}
		}
	}

	return versions, nil
}
