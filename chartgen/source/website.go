package source

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// Limits of a server's list, of which a page has a hundred entries, and of each page in bytes and in values of JSON.
const (
	maxPages      = 100
	maxList       = 16 << 20
	maxListValues = 1500000
)

// Server is a web server that may require credentials.
type Server struct {
	// Host of the address without the port, for example "github.com".
	Host string
	// TLS reports whether requests are sent over TLS.
	TLS bool
	// Tokens are the variables in which users of clusterctl and cluster-api-operator keep a token
	// for the server, for example "GITHUB_TOKEN".
	Tokens []string
}

// OptionsFunc returns how a server is reached. It is called before the first request, so that no Secret is read for
// what does not need one. If it is nil, the options are the zero value.
type OptionsFunc func(ctx context.Context, server Server) (transport.Options, error)

// website is a place on a web server. It is not safe for concurrent use.
type website struct {
	site
	// components is the most likely name of the components.
	components string
}

// site is a kind of web server.
type site interface {
	// fileURL returns the address of a file of a tag, also for messages. Without a tag it is the
	// address of the project.
	fileURL(tag, name string) string
	// read downloads a file of a tag.
	read(ctx context.Context, tag, name string, limit int64) ([]byte, error)
	// versions lists the tags. The error is of the kind NotFound if the server cannot.
	versions(ctx context.Context) ([]string, error)
	// files lists the names of the files of a tag. It returns nil if the server never can.
	files(ctx context.Context, tag string) ([]string, error)
}

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
// The error is of the kind Refused.
func NewWebsite(address string, provider bundle.Provider, options OptionsFunc) (*Source, error) {
	u, err := parseURL(address)
	if err != nil {
		return nil, err
	}

	parts := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")

	var (
		at            site
		version, file string
	)

	switch {
	case strings.Contains(u.EscapedPath(), gitLabAPI):
		at, version, file, err = parseGitLab(u, options)
		if err != nil {
			return nil, err
		}
	case slices.Index(parts, "releases") >= 2, u.Hostname() == gitHubHost && len(parts) == 2:
		at, version, file = parseGitHub(u, parts, options)
	default:
		at, version, file = parseFolder(u, options)
	}

	w := &website{site: at, components: cmp.Or(file, componentsNames(provider)[0])}

	s := &Source{
		Place: w, Provider: provider, Kind: "url", components: file,
		exact: func(name string) Version { return w.version(name, "") },
	}
	if ranges.IsExact(version) {
		s.Default = version
	}

	return s, nil
}

// parseURL parses an address and rejects what a web server's address may not contain.
func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, &transport.Error{
			Kind: transport.Refused, Place: "the source's URL", Problem: "it cannot be read",
			Fix: "write it as https://host/path",
		}
	}

	invalid := &transport.Error{Kind: transport.Refused, Place: "the URL " + transport.RedactURL(u)}

	switch {
	case u.User != nil:
		invalid.Problem = "it holds credentials, which anyone with access to the resource can read"
		invalid.Fix = "put them into the Secret of spec.fetchConfig.secretRef"
	case u.RawQuery != "" || u.Fragment != "":
		invalid.Problem = "it must end there: a query or fragment in spec.fetchConfig is not sent"
		invalid.Fix = "put a token into the Secret of spec.fetchConfig.secretRef"
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		invalid.Problem = "it is not the address of a web server"
		invalid.Fix = "it must begin with https:// or http://"
	default:
		return u, nil
	}

	return nil, invalid
}

// Versions lists the versions on the server. Of v1.0.0 and 1.0.0, the former counts.
func (w *website) Versions(ctx context.Context) ([]Version, error) {
	tags, err := w.versions(ctx)
	if err != nil {
		return nil, err
	}

	place := w.fileURL("", "")
	if err := checkCount(place, "versions", len(tags)); err != nil {
		return nil, err
	}

	slices.Sort(tags)
	slices.Reverse(tags) // with "v" before without

	var versions []Version

	for _, tag := range ParseVersions(tags) {
		version := w.version(tag.Name, tag.Name)
		if len(versions) == 0 || versions[len(versions)-1].Name != version.Name {
			versions = append(versions, version)
		}
	}

	if len(versions) == 0 {
		return nil, &transport.Error{
			Kind: transport.NotFound, Place: place, Problem: "has no release whose name is a semantic version such as v1.13.5",
		}
	}

	return versions, nil
}

// version returns a version by its name. Its origin is the URL of the components if the tag has a "v".
func (w *website) version(name, tag string) Version {
	name = withV(name)
	origin := w.fileURL(name, w.components)

	return Version{Name: name, ID: tag, Fingerprint: origin, Origin: Origin{Place: origin}}
}

// Files downloads metadata.yaml, and finds out the version's tag by that, which may lack the "v".
func (w *website) Files(ctx context.Context, version Version) (*Files, error) {
	tags := []string{version.ID}
	if version.ID == "" {
		tags = []string{version.Name, withoutV(version.Name)}
	}

	var missing error

	for _, tag := range tags {
		metadata, err := w.read(ctx, tag, bundle.MetadataFile, maxMetadata)
		if IsNotFound(err) {
			missing = cmp.Or(missing, err)
			continue
		}

		if err != nil {
			return nil, err
		}

		return &Files{
			Place:    w.fileURL(tag, w.components),
			Metadata: metadata,
			list:     func(ctx context.Context) ([]string, error) { return w.files(ctx, tag) },
			read: func(ctx context.Context, name string, limit int64) ([]byte, error) {
				data, err := w.read(ctx, tag, name, limit)

				return data, err
			},
		}, nil
	}

	return nil, missing
}

// connection creates a client when the first request is made.
type connection struct {
	options OptionsFunc
	server  Server
	// origins are those that the credentials are sent to.
	origins []string

	client *transport.Client
	// hasToken reports, once there is a client, whether its credentials include a token.
	hasToken bool
}

// newConnection returns the connection to the server of an address.
func newConnection(u *url.URL, options OptionsFunc, tokens ...string) connection {
	return connection{
		options: options,
		server:  Server{Host: u.Hostname(), TLS: u.Scheme == "https", Tokens: tokens},
		origins: []string{transport.Origin(u)},
	}
}

// get downloads a file of at most limit bytes.
func (c *connection) get(ctx context.Context, address, accept string, limit int64) (*transport.Response, error) {
	if c.client == nil {
		if err := c.connect(ctx); err != nil {
			return nil, err
		}
	}

	return c.client.Get(ctx, transport.Request{URL: address, Accept: accept, Limit: limit})
}

// connect creates the client.
func (c *connection) connect(ctx context.Context) error {
	var (
		options transport.Options
		err     error
	)

	if c.options != nil {
		if options, err = c.options(ctx, c.server); err != nil {
			return err
		}
	}

	login, err := options.Login(ctx, c.server.Host)
	if err != nil {
		return err
	}

	c.client, err = transport.NewClient(options, login, c.origins...)
	c.hasToken = login.AccessToken != ""

	return err
}

// download downloads the content of a file.
func (c *connection) download(ctx context.Context, address string, limit int64) ([]byte, error) {
	res, err := c.get(ctx, address, "", limit)
	if err != nil {
		return nil, err
	}

	return res.Body, nil
}

// nextLink matches the address of the next page in a Link header.
var nextLink = regexp.MustCompile(`<([^>]*)>;\s*rel="next"`)

// list requests a list from an API, page by page as long as the next page is at an address of its own.
func list[T any](
	ctx context.Context, address string, isOwn func(*url.URL) bool,
	get func(ctx context.Context, address string) (*transport.Response, error),
) ([]T, error) {
	var all []T

	next := address
	for page := 0; next != "" && page < maxPages; page++ {
		res, err := get(ctx, next)
		if err != nil {
			return nil, err
		}

		var entries []T
		if err := parseJSON(next, res.Body, &entries); err != nil {
			return nil, err
		}

		all = append(all, entries...)
		if err := checkCount(address, "entries", len(all)); err != nil {
			return nil, err
		}

		next = ""

		if match := nextLink.FindStringSubmatch(res.Header.Get("Link")); match != nil {
			if u, err := url.Parse(match[1]); err == nil && isOwn(u) {
				next = u.String()
			}
		}
	}

	return all, nil
}

// parseJSON decodes the response of an API. The error does not quote the response.
func parseJSON(address string, data []byte, into any) error {
	const fix = "check that this is the API of such a server"

	if err := limit.List(data, maxListValues); err != nil {
		return &transport.Error{Place: address, Kind: transport.Invalid, Problem: err.Error(), Fix: fix}
	}

	if err := json.Unmarshal(data, into); err != nil {
		return &transport.Error{Place: address, Problem: "it is not the JSON that is expected", Fix: fix}
	}

	return nil
}

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
func parseFolder(u *url.URL, options OptionsFunc) (at *webFolder, version, file string) {
	at = &webFolder{connection: newConnection(u, options)}

	address := transport.RedactURL(u)
	if !strings.HasSuffix(address, ".yaml") && !strings.HasSuffix(address, ".yml") {
		at.base = strings.TrimSuffix(address, "/") + "/" + versionPlaceholder
		at.version = versionPlaceholder

		return at, "", ""
	}

	folder, name := path.Split(address)
	at.base = strings.TrimSuffix(folder, "/")

	stem := strings.TrimSuffix(strings.TrimSuffix(name, ".yaml"), ".yml")
	for _, part := range append(strings.Split(at.base, "/"), stem) {
		if ranges.IsExact(part) {
			at.version = part
		}
	}

	if stem == at.version {
		at.file = name
	}

	return at, at.version, name
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
		version = withoutV(version)
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
	return f.download(ctx, f.fileURL(version, name), limit)
}

func (f *webFolder) versions(context.Context) ([]string, error) {
	return nil, &transport.Error{
		Kind: transport.NotFound, Place: f.base, Problem: "the web server cannot list versions",
		Fix: "set spec.version to an exact version such as v1.13.5",
	}
}

func (f *webFolder) files(context.Context, string) ([]string, error) { return nil, nil }
