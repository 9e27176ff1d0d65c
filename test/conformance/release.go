package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint"
	"github.com/capstan-project/capstan/chartgen/supply/ranges"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/test/harness"
)

// Identity says which provider and version a release is. What is empty follows from its folder, which is named
// <label>/<version>, and its files.
type Identity struct{ Type, Name, Version string }

// release is a release in a folder.
type release struct {
	*harness.Release

	files lint.Folder
}

// load reads the release in a folder. A file that is missing is left to lint.
func load(ctx context.Context, folder string, identity Identity, variables map[string]string) (*release, error) {
	names, err := fileNames(folder)
	if err != nil {
		return nil, err
	}

	abs, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}

	provider, err := identity.provider(filepath.Base(filepath.Dir(abs)), names)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}

	file, err := source.ChooseComponents(provider, names)
	if err != nil {
		return nil, fmt.Errorf("%s %w", folder, err)
	}

	version := cmp.Or(identity.Version, filepath.Base(abs))
	if !ranges.IsExact(version) {
		return nil, fmt.Errorf("%s: it is not known which version this is; rename the folder, or set --version", folder)
	}

	b, err := source.NewComponentsFile(abs+string(filepath.Separator)+file, provider).Fetch(ctx, source.Version{
		Name: "v" + strings.TrimPrefix(version, "v"), ID: filepath.Base(abs),
	})
	if err != nil && !errors.As(err, new(*bundle.InvalidError)) {
		return nil, err
	}

	return &release{
		Release: &harness.Release{
			Type: v1alpha2.ProviderType(provider.Type), Namespace: provider.Label + "-system", Bundle: b, Variables: variables,
		},
		files: lint.Folder{Path: folder, Names: names, Components: file},
	}, nil
}

func fileNames(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}

	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}

	return names, nil
}

// provider returns the provider of a release. A label that has no prefix of a type is that of a core provider, of which
// there is only one.
func (i Identity) provider(label string, names []string) (bundle.Provider, error) {
	t, name := v1alpha2.ParseLabel(label)
	if t == v1alpha2.CoreProviderType && name != "cluster-api" {
		t, name = typeOf(names), ""
	}

	if i.Type != "" {
		t = typeOf([]string{i.Type + "-" + bundle.ComponentsFile})
	}

	if i.Name != "" {
		name = i.Name
	}

	if t == "" || name == "" {
		return bundle.Provider{}, errors.New("it is not known which provider this is; set --type and --name")
	}

	return source.Provider(t, name), nil
}

// typeOf returns the type of provider whose components have the name of one of the files, or "".
func typeOf(names []string) v1alpha2.ProviderType {
	types := v1alpha2.ProviderTypes()

	i := slices.IndexFunc(types, func(t v1alpha2.ProviderType) bool { return slices.Contains(names, t.ComponentsFile()) })
	if i < 0 {
		return ""
	}

	return types[i]
}
