package source

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"

	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// defaultGoProxy is the module proxy if GOPROXY is empty.
const defaultGoProxy = "https://proxy.golang.org"

// goModule lists the tags of a project on a Go module proxy, which does so without rate limits.
type goModule struct {
	// url of the module on the proxy.
	url string
}

// newGoModule returns the module on the first proxy in a value of GOPROXY, or nil if there is none
// before "direct" or "off".
func newGoModule(goProxy, modulePath string) *goModule {
	escaped, err := module.EscapePath(modulePath)
	if err != nil {
		return nil
	}

	if goProxy == "" {
		goProxy = defaultGoProxy
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
