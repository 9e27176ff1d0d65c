package source

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"

	"github.com/capstan-project/capstan/chartgen/supply/web"
)

const (
	// maxGoMajor is the last major version that is looked for.
	maxGoMajor = 29
	// maxGoVersions is the maximum number of versions. Real projects have at most 300.
	maxGoVersions = 10000
	// maxGoList is the maximum size of a list in bytes.
	maxGoList = 1 << 20
)

// goModule is a project on a Go module proxy, which a network without access to the project's server may have. The
// proxy lists the project's versions.
type goModule struct {
	// url of the module on the proxy.
	url string
}

// newGoModule returns the module on the first proxy in a value of GOPROXY, or nil if there is none before
// "direct" or "off", or none at all.
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

		if proxy := goProxyURL(entry); proxy != "" {
			return &goModule{url: proxy + "/" + escaped}
		}
	}

	return nil
}

// goProxyURL returns the URL of an entry of GOPROXY, which may lack its scheme. It is empty for entries
// that are not http or https, such as files.
func goProxyURL(entry string) string {
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
	proxy, err := web.New(web.Credentials{}, nil) // credentials are for the project's own server
	if err != nil {
		return nil, err
	}

	var versions []string

	for major := 1; major <= maxGoMajor; major++ {
		address := m.url
		if major > 1 {
			address += fmt.Sprintf("/v%d", major)
		}

		res, err := proxy.Get(ctx, web.Request{URL: address + "/@v/list", Limit: maxGoList})
		if web.IsNotFound(err) || err == nil && len(res.Body) == 0 && major > 1 {
			break
		}

		if err != nil {
			return nil, err
		}

		for line := range strings.FieldsSeq(string(res.Body)) {
			versions = append(versions, strings.TrimSuffix(line, "+incompatible"))
		}

		if len(versions) > maxGoVersions {
			return nil, fmt.Errorf("%s lists more than %d versions", m.url, maxGoVersions)
		}
	}

	return versions, nil
}
