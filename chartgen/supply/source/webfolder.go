package source

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/capstan-project/capstan/chartgen/supply/ranges"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// versionPlaceholder marks the version in the address of a folder of versions.
const versionPlaceholder = "{version}"

// webFolder is a site of plain files.
type webFolder struct {
	connection
	// base is the address of the folder with the files of a version.
	base string
	// version is the part of base and file that is replaced by the requested version; empty if there
	// is none.
	version string
	// file is the name of the components if it contains the version; otherwise empty.
	file string
}

// parseFolder parses the address of a file or of a folder of versions.
func parseFolder(u *url.URL, options WebOptions) (site *webFolder, version, file string) {
	site = &webFolder{
		connection: connection{
			credentials: options.Credentials,
			guard:       options.Guard,
			server:      Server{Host: u.Hostname(), TLS: u.Scheme == "https"},
			origins:     []string{web.Origin(u)},
		},
	}

	address := web.RedactURL(u)
	if !strings.HasSuffix(address, ".yaml") && !strings.HasSuffix(address, ".yml") {
		site.base = strings.TrimSuffix(address, "/") + "/" + versionPlaceholder
		site.version = versionPlaceholder

		return site, "", ""
	}

	folder, name := path.Split(address)
	site.base = strings.TrimSuffix(folder, "/")

	stem := strings.TrimSuffix(strings.TrimSuffix(name, ".yaml"), ".yml")
	for _, part := range append(strings.Split(site.base, "/"), stem) {
		if ranges.IsExact(part) {
			site.version = part
		}
	}

	if stem == site.version {
		site.file = name
	}

	return site, site.version, name
}

func (f *webFolder) fileURL(version, name string) string {
	if version == "" {
		return f.base
	}

	if f.version == "" {
		return f.base + "/" + name
	}

	// the server writes versions without a "v" if the address does
	if !strings.HasPrefix(f.version, "v") && f.version != versionPlaceholder {
		version = strings.TrimPrefix(version, "v")
	}

	parts := strings.Split(f.base, "/")
	for i := range parts {
		if parts[i] == f.version {
			parts[i] = version
		}
	}

	if name == f.file && name != "" {
		name = strings.Replace(name, f.version, version, 1)
	}

	return strings.Join(parts, "/") + "/" + name
}

func (f *webFolder) read(ctx context.Context, version, name string, limit int64) ([]byte, error) {
	res, err := f.get(ctx, f.fileURL(version, name), "", limit)
	if err != nil {
		return nil, err
	}

	return res.Body, nil
}

func (f *webFolder) versions(context.Context) ([]string, error) {
	return nil, &NotFoundError{
		Message: fmt.Sprintf(
			"the web server of %s cannot list versions: set spec.version to an exact version such as v1.13.5",
			f.base,
		),
	}
}

func (f *webFolder) files(context.Context, string) ([]string, error) { return nil, errNoList }
