package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// Maximum sizes of files on web servers in bytes: three times the largest components of a real
// provider, and far more than any metadata or list of releases.
const (
	maxComponents = limit.MaxText
	maxMetadata   = 1 << 20
	maxList       = 16 << 20
)

// Website is a source on a web server. It caches what it reads, so create one for each reconcile or
// command. It is not safe for concurrent use.
type Website struct {
	site
	provider bundle.Provider
	// components are the possible names of the components, most likely first.
	components []string
	// defaultVersion is the version in the address.
	defaultVersion string
	// metadata holds what was read, by version.
	metadata map[string][]byte
	// tags are the names that versions have on the server, as far as they are known.
	tags map[string]string
}

var _ Remote = &Website{}

// site is a kind of web server.
type site interface {
	// fileURL returns the address of a file of a tag, also for messages. Without a tag it is the
	// address of the project.
	fileURL(tag, name string) string
	// read downloads a file of a tag.
	read(ctx context.Context, tag, name string, limit int64) ([]byte, error)
	// versions lists the tags. It returns a *NotFoundError if the server cannot.
	versions(ctx context.Context) ([]string, error)
	// files lists the names of the files of a tag. It returns errNoList if the server never can.
	files(ctx context.Context, tag string) ([]string, error)
}

// errNoList means that a server does not list files.
var errNoList = errors.New("the server does not list files")

// Versions lists the versions on the server.
func (w *Website) Versions(ctx context.Context) ([]Version, error) {
	tags, err := w.versions(ctx)
	if err != nil {
		return nil, err
	}

	if err := checkCount(w.fileURL("", ""), "versions", len(tags)); err != nil {
		return nil, err
	}

	versions := make([]Version, 0, len(tags))
	listed := map[string]string{}

	for _, tag := range ParseVersions(tags) {
		version := w.Version(tag.Name)
		other, isListed := listed[version.Name]

		if !isListed {
			versions = append(versions, version)
		}

		if other != version.Name { // of v1.0.0 and 1.0.0, the former counts
			listed[version.Name] = tag.Name
		}
	}

	maps.Copy(w.tags, listed)

	if len(versions) == 0 {
		return nil, &NotFoundError{
			Message: fmt.Sprintf("%s has no release whose name is a semantic version such as v1.13.5", w.fileURL("", "")),
		}
	}

	return versions, nil
}

// Version returns the Version of a name. Its origin is the URL of the components if the tag has a "v".
func (w *Website) Version(name string) Version {
	name = withV(name)
	origin := w.fileURL(name, w.components[0])
	unprefixed := w.fileURL(withoutV(name), w.components[0])

	return Version{Name: name, ID: name, Fingerprint: origin, Origin: origin, Unprefixed: unprefixed}
}

// tagsOf returns the tags that a version may have, most likely first.
func (w *Website) tagsOf(version Version) []string {
	if tag, known := w.tags[version.Name]; known {
		return []string{tag}
	}

	if version.Origin == version.Unprefixed {
		return []string{version.Name}
	}

	return []string{version.Name, withoutV(version.Name)}
}

// DefaultVersion returns the version in the address.
func (w *Website) DefaultVersion() string { return w.defaultVersion }

// Metadata downloads metadata.yaml, once a version.
func (w *Website) Metadata(ctx context.Context, version Version) ([]byte, error) {
	if data, ok := w.metadata[version.ID]; ok {
		return data, nil
	}

	data, err := w.readFile(ctx, version, bundle.MetadataFile, maxMetadata)
	if err != nil {
		return nil, err
	}

	w.metadata[version.ID] = data

	return data, nil
}

// Fetch downloads metadata and components. For an infrastructure provider it also downloads the
// cluster templates: all, or the default one if the server cannot list its files.
func (w *Website) Fetch(ctx context.Context, version Version) (*bundle.Bundle, error) {
	metadata, err := w.Metadata(ctx, version)
	if err != nil {
		return nil, err
	}

	components, err := w.readComponents(ctx, version)
	if err != nil {
		return nil, err
	}

	templates, unlisted, err := w.readTemplates(ctx, version)
	if err != nil {
		return nil, err
	}

	published := version.Origin
	if w.tagsOf(version)[0] != version.Name {
		published = version.Unprefixed
	}

	return &bundle.Bundle{
		Provider:   w.provider,
		Version:    version.Name,
		Source:     published,
		Metadata:   metadata,
		Components: components,
		Templates:  templates,
		Unlisted:   unlisted,
	}, nil
}

// readComponents tries the possible names of the components. If none exists, the error is about the
// most likely one.
func (w *Website) readComponents(ctx context.Context, version Version) ([]byte, error) {
	var firstErr error

	for _, name := range w.components {
		data, err := w.readFile(ctx, version, name, maxComponents)
		if !IsNotFound(err) {
			return data, err
		}

		if firstErr == nil {
			firstErr = err
		}
	}

	return nil, firstErr
}

// defaultTemplate is the name of the cluster template without a flavor.
const defaultTemplate = "cluster-template.yaml"

// readTemplates downloads cluster templates and ClusterClasses. Listing them may take a request that counts
// towards a rate limit. A provider is useful without its templates, so files that are none are only logged, and
// if listing them fails, only the default one is downloaded, and unlisted is true.
func (w *Website) readTemplates(ctx context.Context, version Version) (files []bundle.File, unlisted bool, err error) {
	if w.provider.Type != string(v1alpha2.InfrastructureProviderType) {
		return nil, false, nil
	}

	names, listErr := w.files(ctx, w.tagsOf(version)[0])
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}

	if listErr != nil {
		names = []string{defaultTemplate}
		unlisted = !errors.Is(listErr, errNoList)
	}

	slices.Sort(names)

	for _, name := range names {
		if !bundle.IsTemplate(name) {
			continue
		}

		data, err := w.readFile(ctx, version, name, maxMetadata)
		if listErr != nil && err != nil {
			unlisted = unlisted || !IsNotFound(err)
			continue
		}

		if err != nil {
			return nil, false, err
		}

		files = append(files, bundle.File{Name: name, Data: data})
		if err := checkTemplates(files); err != nil {
			return nil, false, err
		}
	}

	return w.keepTemplates(ctx, version, files), unlisted, ctx.Err()
}

// keepTemplates returns the files that are objects. They become part of the chart as they are, which the
// users of the namespace can read: a server could otherwise have the operator copy any other file.
func (w *Website) keepTemplates(ctx context.Context, version Version, files []bundle.File) []bundle.File {
	return slices.DeleteFunc(files, func(file bundle.File) bool {
		_, err := bundle.ParseTemplate(file.Data)
		if err != nil {
			logr.FromContextOrDiscard(ctx).Info("Leaving a file out of the chart that is not a cluster template",
				"url", w.fileURL(w.tagsOf(version)[0], file.Name))
		}

		return err != nil
	})
}

// readFile reads a file of a version.
func (w *Website) readFile(ctx context.Context, version Version, name string, limit int64) ([]byte, error) {
	var notFound error

	for _, tag := range w.tagsOf(version) {
		data, err := w.read(ctx, tag, name, limit)
		if err == nil {
			w.tags[version.Name] = tag
		}

		if !web.IsNotFound(err) {
			return data, err
		}

		if notFound == nil {
			notFound = &NotFoundError{Message: err.Error()}
		}
	}

	return nil, notFound
}
