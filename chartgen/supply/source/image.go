package source

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"

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

var (
	_ Remote       = &Image{}
	_ TaggedSource = &Image{}
)

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

	files, err := i.access.Client.Files(ctx, image, []string{imageFolder, profilesFolder}, hasRelease)
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
func hasRelease(files map[string][]byte) bool {
	for _, folder := range []string{imageFolder, path.Join(profilesFolder, defaultProfile)} {
		release := filesIn(files, folder)
		if release[bundle.MetadataFile] != nil && findComponents(release) != "" {
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

// imageRelease is a folder of an image with the files of a release.
type imageRelease struct {
	// image is pinned to its digest.
	image  oci.Reference
	folder string
	// files by their names in the folder.
	files map[string][]byte
}

// invalid returns the error of a file in the folder, or of the folder if the name is empty.
func (r imageRelease) invalid(file, format string, args ...any) error {
	return &bundle.InvalidError{
		File:   fmt.Sprintf("%s: /%s", r.image, path.Join(r.folder, file)),
		Reason: fmt.Sprintf(format, args...),
	}
}

// imageMetadata is the content of metadata.json or metadata.yaml in a folder with manifests, in
// either of the spellings in use.
type imageMetadata struct {
	// ImageName and SelfImageRef are the image's own reference in the manifests.
	ImageName    string `json:"imageName"`
	SelfImageRef string `json:"selfImageRef"`
	// ProviderVersion and Attributes["version"] are the version; optional.
	ProviderVersion string            `json:"providerVersion"`
	Attributes      map[string]string `json:"attributes"`
	// ReleaseSeries is set if the file is clusterctl's metadata.yaml.
	ReleaseSeries []bundle.ReleaseSeries `json:"releaseSeries"`
}

// bundle returns the bundle of a version from the files of its release.
func (i *Image) bundle(version Version, release imageRelease) (*bundle.Bundle, error) {
	name := findComponents(release.files)
	if name == "" {
		return nil, release.invalid("", "holds no components; put them into %s", bundle.ComponentsFile)
	}

	var metadata imageMetadata
	for _, file := range []string{bundle.MetadataFile, "metadata.json"} {
		if err := yaml.Unmarshal(release.files[file], &metadata); err != nil {
			return nil, release.invalid(file, "not valid YAML: %v", err)
		}
	}

	requested, err := semver.NewVersion(version.Name)
	if err != nil {
		return nil, release.invalid("", "%s is not a version: %v", version.Name, err)
	}

	for _, found := range []string{metadata.ProviderVersion, metadata.Attributes["version"]} {
		if v, err := semver.NewVersion(found); err == nil && !v.Equal(requested) {
			return nil, release.invalid(bundle.MetadataFile, "is about version %s, not %s", found, version.Name)
		}
	}

	b := &bundle.Bundle{
		Provider:   i.provider,
		Version:    version.Name,
		Source:     release.image.String(),
		Metadata:   release.files[bundle.MetadataFile],
		Components: pinOwnImage(release.files[name], release.image, metadata.ImageName, metadata.SelfImageRef),
	}

	if metadata.ReleaseSeries == nil {
		contract := newestContract(b.Components)
		if contract == "" {
			return nil, release.invalid(
				bundle.MetadataFile,
				"has no releaseSeries, and no CRD has a label such as cluster.x-k8s.io/v1beta2, "+
					"so the contract is not known; add clusterctl's metadata.yaml",
			)
		}

		b.Metadata = generateMetadata(requested, contract)
	}

	for _, file := range slices.Sorted(maps.Keys(release.files)) {
		if IsTemplateFile(file) {
			b.Templates = append(b.Templates, bundle.File{Name: file, Data: release.files[file]})
		}
	}

	return b, nil
}

// findComponents returns the name of the file with the components; empty if there is none.
func findComponents(files map[string][]byte) string {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, bundle.ComponentsFile) || name == "manifests.yaml" || name == "manifests" {
			return name
		}
	}

	return ""
}

// filesIn returns the files in a folder, without subfolders, by their base names.
func filesIn(files map[string][]byte, folder string) map[string][]byte {
	found := map[string][]byte{}

	for name, data := range files {
		if path.Dir(name) == folder {
			found[path.Base(name)] = data
		}
	}

	return found
}

// pinOwnImage replaces the references of the image to itself by its reference with the digest.
func pinOwnImage(components []byte, pinned oci.Reference, references ...string) []byte {
	pinned.Tag = "" // some container runtimes reject references with both a tag and a digest

	for _, reference := range references {
		if reference == "" {
			continue
		}

		complete := regexp.MustCompile(regexp.QuoteMeta(reference) + `(["'\s]|$)`)
		components = complete.ReplaceAll(components, []byte(pinned.Name()+"${1}"))
	}

	return components
}

// contractLabel matches the labels of CRDs that name a contract they implement.
var contractLabel = regexp.MustCompile(`^cluster\.x-k8s\.io/(v[0-9]+((alpha|beta)[0-9]+)?)$`)

// newestContract returns the newest contract in the labels of CRDs, which is the contract of an image
// without clusterctl's metadata. It is empty if there is none, or if the components cannot be parsed:
// generating the chart returns that error.
func newestContract(components []byte) string {
	parsed, err := bundle.OutlineComponents(components)
	if err != nil {
		return ""
	}

	newest := ""

	for _, doc := range parsed.Documents {
		if !doc.IsCRD() {
			continue
		}

		for label := range doc.Object.GetLabels() {
			match := contractLabel.FindStringSubmatch(label)
			if match != nil && version.CompareKubeAwareVersionStrings(match[1], newest) > 0 {
				newest = match[1]
			}
		}
	}

	return newest
}

// generateMetadata returns clusterctl's metadata.yaml for a single release.
func generateMetadata(v *semver.Version, contract string) []byte {
	return fmt.Appendf(
		nil,
		"apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n"+
			"- major: %d\n  minor: %d\n  contract: %s\n",
		v.Major(),
		v.Minor(),
		contract,
	)
}
