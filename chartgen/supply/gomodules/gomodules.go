// Package gomodules lists the versions of a project from a Go module proxy, which a network without access
// to the project's server may have.
package gomodules

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"

	"github.com/capstan-project/capstan/chartgen/supply/web"
)

const (
	// maxMajor is the last major version that is looked for.
	maxMajor = 29
	// maxVersions is the maximum number of versions. Real projects have at most 300.
	maxVersions = 10000
	// maxList is the maximum size of a list in bytes.
	maxList = 1 << 20
)

// Module is a project on a module proxy.
type Module struct {
	// URL of the module on the proxy.
	URL string
}

// New returns the module on the first proxy in a value of GOPROXY, or nil if there is none before
// "direct" or "off", or none at all.
func New(goProxy, modulePath string) *Module {
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
			return &Module{URL: proxy + "/" + escaped}
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

// Versions lists the module's versions. Major versions from v2 on are modules of their own; they are
// listed up to the first one without versions.
func (m *Module) Versions(ctx context.Context) ([]string, error) {
	proxy, err := web.New(web.Credentials{}, nil) // credentials are for the project's own server
	if err != nil {
		return nil, err
	}

	var versions []string

	for major := 1; major <= maxMajor; major++ {
		address := m.URL
		if major > 1 {
			address += fmt.Sprintf("/v%d", major)
		}

		res, err := proxy.Get(ctx, web.Request{URL: address + "/@v/list", Limit: maxList})
		if web.IsNotFound(err) || err == nil && len(res.Body) == 0 && major > 1 {
			break
		}

		if err != nil {
			return nil, err
		}

		for line := range strings.FieldsSeq(string(res.Body)) {
			versions = append(versions, strings.TrimSuffix(line, "+incompatible"))
		}

		if len(versions) > maxVersions {
			return nil, fmt.Errorf("%s lists more than %d versions", m.URL, maxVersions)
		}
	}

	return versions, nil
}
