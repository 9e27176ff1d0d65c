// Package source finds the versions of a provider and reads the files of a version: on GitHub, GitLab or another web
// server, in an OCI registry, in ConfigMaps or in a folder. Each of these is a Place. The choice of a version, the
// roles of its files and the limits on their size are the same for all places.
package source

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// Place is where versions of a provider are published.
type Place interface {
	// Versions lists the versions, newest first. If there are none, the error is of the kind NotFound.
	Versions(ctx context.Context) ([]Version, error)
	// Files finds what is published of a version.
	Files(ctx context.Context, version Version) (*Files, error)
}

// Version is one version of a provider in a place.
type Version struct {
	// Name is the version with a leading "v", for example "v1.13.5".
	Name string
	// ID is what the place calls it: a tag, a folder, or "ConfigMap <name>". It is empty if that is not known yet.
	ID string
	// Fingerprint changes whenever the files may have changed. Computing it does not read them. It is empty if there is
	// none.
	Fingerprint string
	Origin      Origin
}

// Origin identifies the content of a version: what has the same origin need not be fetched again.
type Origin struct {
	// Place is where exactly the version is, for users. It is empty if the content there may change, which is then
	// cheap to read each time.
	Place string
	// Digest is what the components must have; empty for any.
	Digest string
	// Trust are the signatures that are required; empty for none.
	Trust string
}

// String returns the origin as the store of charts records it; empty if the content may change.
func (o Origin) String() string {
	text := o.Place
	if text != "" && o.Digest != "" {
		text += "@" + o.Digest
	}

	return strings.TrimSpace(text + " " + o.Trust)
}

// Files are the published files of a version.
type Files struct {
	// Place is where exactly they are, for messages.
	Place string
	// Source is where they are as the chart records it; empty for Place.
	Source string
	// Metadata is the content of metadata.yaml; nil if there is none.
	Metadata []byte
	// Chart is the provider's chart if that is published instead of files.
	Chart *chart.Chart

	// names of all files, which may be none; not set if there is list.
	names []string
	// list requests the names if the place does not tell them by itself; nil if names has them. It returns nil if the
	// place never tells them.
	list func(ctx context.Context) ([]string, error)
	// read returns a file of at most limit bytes. If there is none, the error is of the kind NotFound.
	read func(ctx context.Context, name string, limit int64) ([]byte, error)
}

// newFiles returns Files held in memory.
func newFiles(place, source string, files map[string][]byte) *Files {
	return &Files{
		Place:    place,
		Source:   source,
		Metadata: files[bundle.MetadataFile],
		names:    slices.Sorted(maps.Keys(files)),
		read: func(_ context.Context, name string, limit int64) ([]byte, error) {
			return files[name], checkSize(place, name, int64(len(files[name])), limit)
		},
	}
}

// checkSize returns an error if a file is larger than a limit in bytes.
func checkSize(place, name string, size, limit int64) error {
	if size <= limit {
		return nil
	}

	return &transport.Error{
		Kind: transport.Invalid, Place: place,
		Problem: fmt.Sprintf("its file %s is larger than %d MiB, which no provider's file is", name, limit>>20),
	}
}

// Source is where the versions of one provider come from.
type Source struct {
	Place

	Provider bundle.Provider
	// Kind is the field of spec.fetchConfig that names such a place.
	Kind string
	// Default is the version in the address, which is used if none is requested; empty for none.
	Default string
	// Digest is what the components must have, "sha256:…"; empty for any.
	Digest string
	// Trust describes the signatures that the place requires; nil for none.
	Trust func(ctx context.Context) (string, error)
	// Metadata returns the metadata of a version that was read before, and nil for others; nil if none is kept.
	Metadata func(Version) []byte
	// Admit gives the caller a turn to ask the place, which ends with done; nil if that needs none. Where nothing has to
	// be asked, none is taken.
	Admit func() (done func(), err error)
	// Asking is called each time before the place is asked over the network; it may be nil.
	Asking func()

	// local is set if the place is a folder or in the cluster.
	local bool
	// components is the name of the components in the address; empty if there is none.
	components string
	// exact returns a version by its name without a request. It need not exist. It is nil if the place has to be asked.
	exact func(name string) Version
}

// Release is the content of a version in a source: either files or a chart.
type Release struct {
	*bundle.Bundle
	// Chart is the provider's chart, for which nothing is generated.
	Chart *chart.Chart
	// Place is where it was read, for users.
	Place string
	// Names are those of all files; nil if the place does not tell them by itself.
	Names []string
}

// Size returns how many bytes of components and metadata were read.
func (r *Release) Size() int {
	if r == nil || r.Bundle == nil {
		return 0
	}

	return len(r.Components) + len(r.Metadata)
}

// Provider returns the identity that a provider of the API has in bundles and charts.
func Provider(t v1alpha2.ProviderType, name string) bundle.Provider {
	return bundle.Provider{Type: string(t), Name: name, Label: t.Label(name)}
}

// Limits of what is read of a version, and of what a server lists. Real projects have at most 300 versions, with 60
// files each, and 27 templates of 240 KB together. No provider's components have more than a fifth of limit.MaxText.
const (
	maxEntries       = 10000
	maxMetadata      = 1 << 20
	maxTemplate      = 1 << 20
	maxTemplates     = 200
	maxTemplatesSize = 16 << 20
)

// Fetch reads the published files of a version. If some are missing, it returns the others together with the error.
func (s *Source) Fetch(ctx context.Context, version Version) (*Release, error) {
	done, err := s.admit()
	if err != nil {
		return nil, err
	}
	defer done()

	files, err := s.Files(ctx, version)
	if err != nil {
		return nil, err
	}

	source := cmp.Or(files.Source, files.Place)
	if files.Chart != nil {
		return &Release{Chart: files.Chart, Place: source}, nil
	}

	b := &bundle.Bundle{Provider: s.Provider, Version: version.Name, Source: source, Metadata: files.Metadata}
	release := &Release{Bundle: b, Place: source, Names: files.names}

	if b.Templates, b.Unlisted, err = s.readTemplates(ctx, files); err != nil {
		return nil, err
	}

	if b.Components, err = s.readComponents(ctx, files, version); err != nil {
		return release, err
	}

	if b.Metadata == nil {
		return release, &transport.Error{
			Kind: transport.Invalid, Place: files.Place,
			Problem: fmt.Sprintf("has no %s, which maps versions to Cluster API contracts", bundle.MetadataFile),
			Fix:     fmt.Sprintf("add that of %s, or choose another version", version.Name),
		}
	}

	return release, b.CheckDigest(s.Digest)
}

// admit lets the caller ask the place. Without a turn it is as if that did not answer.
func (s *Source) admit() (done func(), err error) {
	if s.Asking != nil && !s.local {
		s.Asking()
	}

	if s.Admit == nil {
		return func() {}, nil
	}

	done, err = s.Admit()
	if err != nil {
		return nil, &transport.Error{Kind: transport.Unavailable, Problem: err.Error(), Err: err}
	}

	return done, nil
}

// readComponents reads the file with the components.
func (s *Source) readComponents(ctx context.Context, files *Files, version Version) ([]byte, error) {
	names, err := s.componentsIn(files, version)
	if err != nil {
		return nil, err
	}

	var missing error

	for _, name := range names {
		data, err := files.read(ctx, name, limit.MaxText)
		if !IsNotFound(err) {
			return data, err
		}

		missing = cmp.Or(missing, err)
	}

	return nil, missing
}

// componentsIn returns the names that the components may have, most likely first.
func (s *Source) componentsIn(files *Files, version Version) ([]string, error) {
	invalid := &transport.Error{Kind: transport.Invalid, Place: files.Place}

	switch {
	case files.list != nil && s.components == "":
		return componentsNames(s.Provider), nil
	case files.list != nil, slices.Contains(files.names, s.components):
		return []string{s.components}, nil
	case s.components != "":
		invalid.Problem = fmt.Sprintf("has no file %s, which the address of the provider names", s.components)
		return nil, invalid
	}

	name, err := Components(s.Provider, files.names)

	switch {
	case err != nil:
		invalid.Problem = err.Error()
		return nil, invalid
	case name == "":
		invalid.Problem = fmt.Sprintf("has no *-%s%s", bundle.ComponentsFile, butOnly(files.names))
		invalid.Fix = fmt.Sprintf("add that of %s, or choose another version", version.Name)

		return nil, invalid
	}

	return []string{name}, nil
}

// butOnly lists the first names for a message.
func butOnly(names []string) string {
	const maxListed = 10

	if len(names) == 0 {
		return ", nor any other file of a release"
	}

	return ", but only " + strings.Join(names[:min(len(names), maxListed)], ", ")
}

// componentsNames returns the names of a provider's components: those of the provider contract, and those in common
// use.
func componentsNames(provider bundle.Provider) []string {
	t := v1alpha2.ProviderType(provider.Type)

	names := []string{t.ComponentsFile(), t.Name() + "-" + bundle.ComponentsFile, bundle.ComponentsFile}
	if t == v1alpha2.RuntimeExtensionProviderType {
		names = slices.Insert(names, 1, "runtime-extensions-"+bundle.ComponentsFile)
	}

	return slices.Compact(names) // the first two are the same for most types
}

// Components returns the name of the file with the provider's components; empty if there is none. A version may have
// components of several providers, as releases of Cluster API do. If the choice is ambiguous, the error lists the
// candidates.
func Components(provider bundle.Provider, names []string) (string, error) {
	for _, name := range componentsNames(provider) {
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
			strings.Join(found, ", "), provider.Label, componentsNames(provider)[0])
	}

	return strings.Join(found, ""), nil
}

// defaultTemplate is the name of the cluster template without a flavor.
const defaultTemplate = "cluster-template.yaml"

// readTemplates reads the cluster templates and ClusterClasses, which only infrastructure providers have, as in
// clusterctl. Listing them may take a request that counts towards a rate limit, and a provider is useful without
// them: if that fails, only the default one is read, and unlisted is true.
func (s *Source) readTemplates(ctx context.Context, files *Files) (read []bundle.File, unlisted bool, err error) {
	if s.Provider.Type != string(v1alpha2.InfrastructureProviderType) {
		return nil, false, nil
	}

	names, isGuess := slices.Clone(files.names), false

	if files.list != nil {
		names, err = files.list(ctx)
		unlisted = err != nil
		isGuess = names == nil
	}

	if isGuess {
		names = []string{defaultTemplate}
	}

	slices.Sort(names)

	size := 0

	for _, name := range names {
		if !bundle.IsTemplate(name) {
			continue
		}

		data, err := files.read(ctx, name, maxTemplate)
		if err != nil && isGuess && ctx.Err() == nil {
			unlisted = unlisted || !IsNotFound(err)
			continue
		}

		if err != nil {
			return nil, false, err
		}

		read = append(read, bundle.File{Name: name, Data: data})
		if size += len(data); len(read) > maxTemplates || size > maxTemplatesSize {
			return nil, false, &transport.Error{
				Kind: transport.Invalid, Place: files.Place,
				Problem: fmt.Sprintf("has more than %d cluster templates, or more than %d MiB of them",
					maxTemplates, maxTemplatesSize>>20),
				Fix: "publish fewer",
			}
		}
	}

	return read, unlisted, ctx.Err()
}

// checkCount returns an error if a list has too many entries.
func checkCount(place, entries string, count int) error {
	if count <= maxEntries {
		return nil
	}

	return &transport.Error{
		Kind: transport.Invalid, Place: place, Problem: fmt.Sprintf("lists more than %d %s", maxEntries, entries),
	}
}
