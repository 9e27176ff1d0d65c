package source

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/ranges"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// NewWebsite returns the source of a provider at an address on a web server. The form of the address
// determines the kind of server:
//
//   - https://HOST/OWNER/PROJECT/releases/latest/FILE, or with a tag instead of latest: the releases
//     of a project on GitHub, a GitHub Enterprise server, or a mirror with the same paths. FILE is
//     optional.
//   - https://HOST/api/v4/projects/PROJECT/packages/generic/PACKAGE/VERSION/FILE: a generic package
//     of a project on GitLab.
//   - https://HOST/…/FILE.yaml: components with metadata.yaml in the same folder. A folder or file
//     in the address whose name is a version, such as v1.9.3 or v1.9.3.yaml, is replaced by the
//     requested version.
//   - anything else: a folder with one folder a version.
//
// The error is an *AddressError.
func NewWebsite(address string, provider bundle.Provider, options WebOptions) (*Website, error) {
	u, err := parseURL(address)
	if err != nil {
		return nil, err
	}

	w := &Website{
		provider: provider,
		metadata: map[string][]byte{},
		tags:     map[string]string{},
	}

	parts := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")

	var version, file string

	switch {
	case strings.Contains(u.EscapedPath(), gitLabAPI):
		w.site, version, file, err = parseGitLab(u, options)
		if err != nil {
			return nil, err
		}
	case slices.Index(parts, "releases") >= 2, u.Hostname() == gitHubHost && len(parts) == 2:
		w.site, version, file = parseGitHub(u, parts, options)
	default:
		w.site, version, file = parseFolder(u, options)
	}

	if ranges.IsExact(version) {
		w.defaultVersion = version
	}

	w.components = componentsNames(provider, file)

	return w, nil
}

// parseURL parses an address and rejects what a web server's address may not contain.
func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)

	switch {
	case err != nil:
		return nil, &AddressError{"the source's URL cannot be read; write it as https://host/path"}
	case u.User != nil:
		return nil, &AddressError{fmt.Sprintf(
			"the URL %s holds credentials, which anyone with access to the resource can read; "+
				"put them into the Secret of spec.fetchConfig.secretRef",
			web.RedactURL(u),
		)}
	case u.RawQuery != "" || u.Fragment != "":
		return nil, &AddressError{fmt.Sprintf(
			"the URL %s must end there: a query or fragment in spec.fetchConfig is not sent; "+
				"put a token into the Secret of spec.fetchConfig.secretRef",
			web.RedactURL(u),
		)}
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, &AddressError{fmt.Sprintf(
			"%s is not the address of a web server; it must begin with https:// or http://",
			web.RedactURL(u),
		)}
	}

	return u, nil
}

// parseGitHub parses the address of a project, or of a page or file of its releases.
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

// componentsNames returns the possible names of the components, most likely first: the name in the
// address, or else the names of the provider contract and those in common use.
func componentsNames(provider bundle.Provider, inAddress string) []string {
	if inAddress != "" {
		return []string{inAddress}
	}

	names := []string{v1alpha2.ProviderType(provider.Type).ComponentsFile(), bundle.ComponentsFile}
	if v1alpha2.ProviderType(provider.Type) == v1alpha2.RuntimeExtensionProviderType {
		names = slices.Insert(names, 1, "runtime-extensions-components.yaml")
	}

	return names
}

// chooseComponents returns the name of the file with a provider's components among the files of a release;
// empty if there is none. A release may have those of several providers, as that of Cluster API. The error
// says which files could be meant.
func chooseComponents(provider bundle.Provider, names []string) (string, error) {
	for _, name := range componentsNames(provider, "") {
		if slices.Contains(names, name) {
			return name, nil
		}
	}

	var found []string

	for _, name := range names {
		if strings.HasSuffix(name, bundle.ComponentsFile) {
			found = append(found, name)
		}
	}

	if len(found) > 1 {
		slices.Sort(found)

		return "", fmt.Errorf("has several files with components: %s; name that of %s %s",
			strings.Join(found, ", "), provider.Label, componentsNames(provider, "")[0])
	}

	return strings.Join(found, ""), nil
}
