package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// How large files on web servers may be: three times the largest components of a real provider, and
// far more than any metadata or list of releases.
const (
	maxComponents = 16 << 20
	maxMetadata   = 1 << 20
	maxList       = 16 << 20
)

// Server is a web server that may ask for credentials.
type Server struct {
	// Host as in the address, for example github.com.
	Host string
	// Tokens are the names under which people keep a token for it, as clusterctl and
	// cluster-api-operator have them.
	Tokens []string
}

// CredentialsFunc finds the credentials for a server; none are no error.
type CredentialsFunc func(ctx context.Context, server Server) (web.Credentials, error)

// WebOptions say how web servers are asked.
type WebOptions struct {
	// Credentials are asked for when the first request is made, so nobody reads a Secret for what
	// is in a store already. The address tells which server they are for. Nil means none.
	Credentials CredentialsFunc
	// Overrides is the folder of clusterctl's overrides layer, <folder>/<label>/<version>/<file>;
	// empty means none.
	Overrides string
	// GoProxy lists the versions of projects on github.com without counting against GitHub's
	// limits; as in the variable GOPROXY of the go command.
	GoProxy string
}

// Website is a source on a web server. It is made for one reconcile or command and is not for
// concurrent use.
type Website struct {
	site
	provider bundle.Provider
	// components are the names that the file of components may have, most likely first.
	components []string
	// named is the version in the address.
	defaultVersion string
	// overrides is the provider's folder of the overrides layer.
	overrides string
	// metadata that was read, by version.
	metadata map[string][]byte
}

var _ Remote = &Website{}

// site is what one sort of web server does in its own way.
type site interface {
	// fileURL is where a file of a version is, for people too.
	fileURL(version, name string) string
	// read gets a file of a version.
	read(ctx context.Context, version, name string, limit int64) ([]byte, error)
	// versions lists what is on offer; a *NotFoundError when the server cannot.
	versions(ctx context.Context) ([]string, error)
	// files lists the names of a version's files; none when the server cannot.
	files(ctx context.Context, version string) ([]string, error)
}

// Releases lists the versions on the server.
func (w *Website) Versions(ctx context.Context) ([]Version, error) {
	names, err := w.versions(ctx)
	if err != nil {
		return nil, err
	}

	releases := make([]Version, 0, len(names))
	for _, r := range ParseVersions(names) {
		releases = append(releases, w.Version(r.Name))
	}

	if len(releases) == 0 {
		return nil, &NotFoundError{
			Message: fmt.Sprintf("%s has no release whose name is a semantic version such as v1.13.5", w.fileURL("", "")),
		}
	}

	return releases, nil
}

// Release is the release of an exact version.
func (w *Website) Version(version string) Version {
	version = "v" + strings.TrimPrefix(version, "v")

	origin := w.fileURL(version, w.components[0])
	if digest := w.overrideDigest(version); digest != "" {
		origin += " overridden:" + digest
	}

	return Version{Name: version, ID: version, Fingerprint: origin, Origin: origin}
}

// Named is the version in the address.
func (w *Website) DefaultVersion() string { return w.defaultVersion }

// Metadata gets metadata.yaml, once.
func (w *Website) Metadata(ctx context.Context, release Version) ([]byte, error) {
	if data, ok := w.metadata[release.ID]; ok {
		return data, nil
	}

	data, err := w.readFile(ctx, release, bundle.MetadataFile, maxMetadata)
	if err != nil {
		return nil, err
	}

	if w.metadata == nil {
		w.metadata = map[string][]byte{}
	}

	w.metadata[release.ID] = data

	return data, nil
}

// Fetch gets metadata and components, and, for an infrastructure provider where the server lists
// its files, the templates.
func (w *Website) Fetch(ctx context.Context, release Version) (*bundle.Bundle, error) {
	metadata, err := w.Metadata(ctx, release)
	if err != nil {
		return nil, err
	}

	b := &bundle.Bundle{Provider: w.provider, Version: release.Name, Source: release.Origin, Metadata: metadata}
	if b.Components, err = w.readComponents(ctx, release); err != nil {
		return nil, err
	}

	b.Templates, err = w.readTemplates(ctx, release)

	return b, err
}

// readComponents tries the names that components may have.
func (w *Website) readComponents(ctx context.Context, release Version) (data []byte, err error) {
	var first error

	for _, name := range w.components {
		data, err = w.readFile(ctx, release, name, maxComponents)
		if missing := (*NotFoundError)(nil); !errors.As(err, &missing) {
			return data, err
		}

		if first == nil {
			first = err
		}
	}

	return nil, first
}

// readTemplates gets cluster templates and ClusterClasses, which only infrastructure providers
// have, as in clusterctl. Listing them may cost a request that counts against a limit, and a
// provider is worth installing without them: where the list cannot be had there are none.
func (w *Website) readTemplates(ctx context.Context, release Version) ([]bundle.File, error) {
	if w.provider.Type != string(v1alpha2.InfrastructureProviderType) {
		return nil, nil
	}

	names, err := w.files(ctx, release.ID)
	if err != nil {
		logr.FromContextOrDiscard(ctx).
			Info("the provider's cluster templates are left out of its chart: their list cannot be had", "error", err.Error())

		return nil, ctx.Err()
	}

	var templates []bundle.File

	slices.Sort(names)

	for _, name := range names {
		if !IsTemplateFile(name) {
			continue
		}

		data, err := w.readFile(ctx, release, name, maxMetadata)
		if err != nil {
			return nil, err
		}

		templates = append(templates, bundle.File{Name: name, Data: data})
	}

	return templates, nil
}

// isTemplate reports whether a file is a cluster template or a ClusterClass.
func IsTemplateFile(name string) bool {
	return strings.HasSuffix(name, ".yaml") &&
		(strings.HasPrefix(name, "cluster-template") || strings.HasPrefix(name, "clusterclass-"))
}

// file gets a file from the overrides layer, else from the server.
func (w *Website) readFile(ctx context.Context, release Version, name string, limit int64) ([]byte, error) {
	if w.overrides != "" {
		data, err := readFile(os.DirFS(filepath.Join(w.overrides, release.ID)), name)
		if !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
	}

	data, err := w.read(ctx, release.ID, name, limit)
	if web.IsNotFound(err) {
		return nil, &NotFoundError{Message: err.Error()}
	}

	return data, err
}

// overridden is a digest over the files that the overrides layer has of a version; empty when it
// has none.
func (w *Website) overrideDigest(version string) string {
	if w.overrides == "" {
		return ""
	}

	h := sha256.New()
	found := false
	folder := os.DirFS(filepath.Join(w.overrides, version))

	names, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return ""
	}

	for _, name := range names {
		if data, err := readFile(folder, name); err == nil {
			found = true

			fmt.Fprintf(h, "%s %d\n", name, len(data))
			h.Write(data)
		}
	}

	if !found {
		return ""
	}

	const enough = 6

	return hex.EncodeToString(h.Sum(nil)[:enough])
}

// connection makes the client when it is first needed.
type connection struct {
	credentials CredentialsFunc
	server      Server
	// origins are those that the credentials are for.
	origins []string
	client  *web.Client
	// token says, once there is a client, whether it has one.
	token bool
}

func (c *connection) get(ctx context.Context, address, accept string, limit int64) (*web.Response, error) {
	if c.client == nil {
		var (
			credentials web.Credentials
			err         error
		)
		if c.credentials != nil {
			if credentials, err = c.credentials(ctx, c.server); err != nil {
				return nil, err
			}
		}

		if c.client, err = web.New(credentials, c.origins...); err != nil {
			return nil, err
		}

		c.token = credentials.Token != ""
	}

	return c.client.Get(ctx, web.Request{URL: address, Accept: accept, Limit: limit})
}
