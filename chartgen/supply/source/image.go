package source

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Folders of an image with a provider's manifests: either one folder with a release, or one with a
// subfolder for each profile of it.
const (
	imageFolder    = "capi-manifests"
	profilesFolder = "capi-operator-manifests"
	defaultProfile = "default"
)

// Image is a repository with container images of a provider that contain the provider's manifests,
// one tag for each version. The manifests are in one of these folders:
//
//   - /capi-manifests, with the components in *components.yaml, manifests.yaml or manifests, and
//     metadata.yaml
//   - /capi-operator-manifests/<profile>, as in OpenShift's images: the profile "default", or else
//     the one with the provider's name, or else the only one
//
// In the manifests, the references of the image to itself are replaced by the image that they were
// read from, pinned to its digest.
type Image struct{ repository }

var _ Remote = &Image{}

// NewImage returns the source of a provider at an image such as
// registry.example.com/capi/cluster-api-aws-controller, optionally with a tag and a digest. The error
// is an *AddressError.
func NewImage(address string, provider bundle.Provider, options OCIOptions) (*Image, error) {
	ref, err := oci.Parse(address)
	if err != nil {
		return nil, &AddressError{err.Error()}
	}

	return &Image{repository{OCIOptions: options, ref: ref, provider: provider}}, nil
}

// Fetch reads the manifests from the layers of the version's image.
func (i *Image) Fetch(ctx context.Context, version Version) (*bundle.Bundle, error) {
	ref, err := i.resolve(ctx, version)
	if err != nil {
		return nil, err
	}

	pinned, image, err := i.access.Client.Image(ctx, ref)
	if err != nil {
		return nil, contentError(err)
	}

	files, err := i.access.Client.Files(ctx, image, []string{imageFolder, profilesFolder}, i.hasRelease)
	if err != nil {
		return nil, contentError(err)
	}

	folder, err := i.chooseFolder(files)
	if err != nil {
		return nil, &bundle.InvalidError{File: pinned.String(), Reason: err.Error()}
	}

	return i.bundle(version, imageRelease{image: pinned, folder: folder, files: filesIn(files, folder)})
}

// Metadata reads the metadata.yaml of a version, or generates it if the image has none.
func (i *Image) Metadata(ctx context.Context, version Version) ([]byte, error) {
	b, err := i.Fetch(ctx, version)
	if err != nil {
		return nil, err
	}

	return b.Metadata, nil
}

// hasRelease reports whether the files of an image include metadata and components of one of the
// folders that are preferred to all others.
func (i *Image) hasRelease(files map[string][]byte) bool {
	for _, folder := range []string{imageFolder, path.Join(profilesFolder, defaultProfile)} {
		release := filesIn(files, folder)

		components, err := findComponents(i.provider, release)
		if release[bundle.MetadataFile] != nil && (components != "" || err != nil) {
			return true
		}
	}

	return false
}

// chooseFolder returns the folder with the release.
func (i *Image) chooseFolder(files map[string][]byte) (string, error) {
	var profiles []string

	for name := range files {
		folder := path.Dir(name)
		if folder == imageFolder {
			return imageFolder, nil
		}

		parent, profile := path.Split(folder)
		if parent == profilesFolder+"/" && !slices.Contains(profiles, profile) {
			profiles = append(profiles, profile)
		}
	}

	slices.Sort(profiles)

	for _, profile := range []string{defaultProfile, i.provider.Name} {
		if slices.Contains(profiles, profile) {
			return path.Join(profilesFolder, profile), nil
		}
	}

	switch len(profiles) {
	case 0:
		return "", fmt.Errorf(
			"holds neither /%s nor /%s/<profile>; it is not an image with a provider's manifests",
			imageFolder,
			profilesFolder,
		)
	case 1:
		return path.Join(profilesFolder, profiles[0]), nil
	}

	return "", fmt.Errorf(
		"holds the profiles %s, and none of them is called %s or %s",
		strings.Join(profiles, ", "),
		defaultProfile,
		i.provider.Name,
	)
}
