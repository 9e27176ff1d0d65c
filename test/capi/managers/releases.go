package managers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/source"
)

// Labels are the providers that are installed, core first.
var Labels = []string{"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-docker"}

// Releases are the versions at hand of each provider, by label, oldest first.
type Releases map[string][]string

// Found is what can be run.
type Found struct {
	Releases Releases
	// Programs are the paths of the managers' programs, by image.
	Programs map[string]string
	// Missing explains, for each release that is left out, what is missing.
	Missing []string
}

// FindReleases returns the releases in a folder, in the layout of a clusterctl local repository, that have a contract
// and whose programs there are.
func (f Finder) FindReleases(ctx context.Context, repository, contract string) (*Found, error) {
	found := &Found{Releases: Releases{}, Programs: map[string]string{}}

	for _, label := range Labels {
		directory, err := source.NewDirectory(filepath.Join(repository, label))
		if err != nil {
			return nil, err
		}

		versions, err := directory.Versions(ctx)
		if err != nil {
			return nil, err
		}

		for _, version := range versions {
			release, err := directory.Fetch(ctx, version)
			if err != nil {
				return nil, err
			}

			if err := f.add(ctx, found, release.Bundle, contract); err != nil {
				return nil, err
			}
		}

		slices.SortFunc(found.Releases[label], func(a, b string) int {
			return semver.MustParse(a).Compare(semver.MustParse(b))
		})
	}

	return found, nil
}

// add adds a release to what has been found if it has the contract and all its programs there are.
func (f Finder) add(ctx context.Context, found *Found, release *bundle.Bundle, contract string) error {
	metadata, err := bundle.ParseMetadata(release.Metadata)
	if err != nil {
		return err
	}

	if have, err := bundle.Contract(metadata, release.Version); err != nil || have != contract {
		return err
	}

	images, err := imagesOf(release)
	if err != nil {
		return err
	}

	programs := map[string]string{}

	for _, image := range images {
		program, err := f.Find(ctx, image)
		if missing := new(NotFoundError); errors.As(err, &missing) {
			found.Missing = append(found.Missing,
				fmt.Sprintf("%s %s is left out: %v", release.Provider.Label, release.Version, err))

			return nil
		} else if err != nil {
			return err
		}

		programs[image] = program
	}

	maps.Copy(found.Programs, programs)

	label := release.Provider.Label
	found.Releases[label] = append(found.Releases[label], release.Version)

	return nil
}

// imagesOf returns the images of a release's containers.
func imagesOf(release *bundle.Bundle) ([]string, error) {
	components, err := bundle.ParseComponents(release.Components)
	if err != nil {
		return nil, err
	}

	var images []string
	for _, doc := range components.Documents {
		images = append(images, bundle.Images(doc.Object.Object)...)
	}

	return images, nil
}
