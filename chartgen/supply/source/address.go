package source

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// AddressError says that an address does not lead to a source.
type AddressError struct{ message string }

func (e *AddressError) Error() string { return e.message }

// NewWebsite makes the source of a provider at an address on a web server, whose form says what it
// is:
//
//   - https://HOST/OWNER/PROJECT/releases/latest/FILE, or with a tag for latest: the releases of a project on GitHub, on a
//     GitHub Enterprise server or on a mirror with GitHub's paths. The file may be left out.
//   - https://HOST/api/v4/projects/PROJECT/packages/generic/PACKAGE/VERSION/FILE: a generic package of a project on GitLab.
//   - https://HOST/…/FILE.yaml: components with their metadata.yaml beside. A folder or file in it that is called like a
//     version, such as v1.9.3 or v1.9.3.yaml, stands for any version.
//   - any other: a folder with one folder for each version in it.
//
// Its error is an *AddressError.
func NewWebsite(address string, provider bundle.Provider, options WebOptions) (*Website, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, &AddressError{"the source's URL cannot be read; write it as https://host/path"}
	case u.User != nil:
		return nil, &AddressError{
			fmt.Sprintf(
				"the URL %s holds credentials, which everybody can read; put them into the Secret of spec.fetchConfig.secretRef",
				web.RedactURL(u),
			),
		}
	case u.RawQuery != "" || u.Fragment != "":
		return nil, &AddressError{
			fmt.Sprintf(
				"the URL %s must end there: what comes after it in spec.fetchConfig would be lost; a token belongs into the Secret of spec.fetchConfig.secretRef",
				web.RedactURL(u),
			),
		}
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, &AddressError{
			fmt.Sprintf("%s is not the address of a web server; it must begin with https:// or http://", web.RedactURL(u)),
		}
	}

	w := &Website{provider: provider, metadata: map[string][]byte{}}
	if options.Overrides != "" {
		w.overrides = filepath.Join(options.Overrides, provider.Label)
	}

	parts := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	releases := slices.Index(parts, "releases")

	var file string

	switch {
	case strings.Contains(u.EscapedPath(), gitLabAPI):
		w.site, w.defaultVersion, file, err = parseGitLab(u, options)
		if err != nil {
			return nil, err
		}
	case releases >= 2, u.Hostname() == gitHubHost && len(parts) == 2:
		w.site, w.defaultVersion, file = parseGitHub(u, parts, options)
	default:
		w.site, w.defaultVersion, file = parseFiles(u, options)
	}

	if !IsExact(w.defaultVersion) {
		w.defaultVersion = ""
	}

	w.components = componentsNames(provider, file)

	return w, nil
}

// parseGitHub takes the address of a project, or of something in its releases, apart.
func parseGitHub(u *url.URL, parts []string, options WebOptions) (site *gitHub, version, file string) {
	end := cmp.Or(max(slices.Index(parts, "releases"), 0), len(parts))

	project := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/" + path.Join(parts[:end]...)}
	for _, part := range parts[min(end+1, len(parts)):] {
		switch {
		case part == "latest", part == "download", part == "tag":
		case strings.HasSuffix(part, ".yaml"):
			file = part
		default:
			version = part
		}
	}

	return newGitHub(project, options), version, file
}

// componentsNames are the names that components may have: the one that is known, else those that
// the provider contract and usage give.
func componentsNames(provider bundle.Provider, known string) []string {
	if known != "" {
		return []string{known}
	}

	names := []string{v1alpha2.ProviderType(provider.Type).ComponentsFile(), bundle.ComponentsFile}
	if v1alpha2.ProviderType(provider.Type) == v1alpha2.RuntimeExtensionProviderType {
		names = slices.Insert(names, 1, "runtime-extensions-components.yaml")
	}

	return names
}

// files are plain files on a web server.
type files struct {
	connection
	// base is the folder with the files of a version.
	base string
	// version in the base or the file, which stands for any; empty when there is none.
	version string
	// file is the name of the components when that is called like the version.
	file string
}

// parseFiles takes the address of a file, or of a folder of versions, apart.
func parseFiles(u *url.URL, options WebOptions) (site *files, version, file string) {
	site = &files{
		connection: connection{
			credentials: options.Credentials,
			server:      Server{Host: u.Hostname()},
			origins:     []string{web.Origin(u)},
		},
	}

	plain := web.RedactURL(u)
	if !strings.HasSuffix(plain, ".yaml") && !strings.HasSuffix(plain, ".yml") {
		site.base, site.version = strings.TrimSuffix(plain, "/")+"/"+versionPlaceholder, versionPlaceholder
		return site, "", ""
	}

	folder, name := path.Split(plain)
	site.base = strings.TrimSuffix(folder, "/")

	stem := strings.TrimSuffix(strings.TrimSuffix(name, ".yaml"), ".yml")
	for _, part := range append(strings.Split(site.base, "/"), stem) {
		if IsExact(part) {
			site.version = part
		}
	}

	if stem == site.version {
		site.file = name
	}

	return site, site.version, name
}

// anyVersion stands for the version in the address of a folder of versions.
const versionPlaceholder = "{version}"

func (f *files) fileURL(version, name string) string {
	if version == "" {
		return f.base
	}

	if f.version == "" {
		return f.base + "/" + name
	}

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

func (f *files) read(ctx context.Context, version, name string, limit int64) ([]byte, error) {
	res, err := f.get(ctx, f.fileURL(version, name), "", limit)
	if err != nil {
		return nil, err
	}

	return res.Body, nil
}

func (f *files) versions(context.Context) ([]string, error) {
	return nil, &NotFoundError{
		Message: fmt.Sprintf(
			"the web server of %s cannot list versions: set spec.version to an exact version such as v1.13.5",
			f.base,
		),
	}
}

func (f *files) files(context.Context, string) ([]string, error) { return nil, nil }
