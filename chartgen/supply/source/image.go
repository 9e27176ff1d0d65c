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

// Folders of an image that hold a provider's manifests: one release, or below it one folder for
// each profile of it.
const (
	imageFolder    = "capi-manifests"
	profilesFolder = "capi-operator-manifests"
	defaultProfile = "default"
)

// Image is a provider's own container image that carries the provider's manifests, one tag for each
// version. Its folder /capi-manifests holds a release: the components in *components.yaml,
// manifests.yaml or manifests, and metadata.yaml; or, as OpenShift's images have it,
// /capi-operator-manifests/<profile> does, of which the profile "default" is taken, else the one
// called like the provider, else the only one. The image that the manifests name as their own
// becomes the very image that they were read from, by its digest.
type Image struct{ repository }

var (
	_ Remote = &Image{}
	_ TaggedSource = &Image{}
)

// NewImage makes the source of a provider at an image, such as
// registry.example.com/capi/cluster-api-aws-controller, which may have a tag and a digest.
func NewImage(address string, provider bundle.Provider, options OCIOptions) (*Image, error) {
	ref, err := oci.Parse(address)
	if err != nil {
		return nil, &AddressError{err.Error()}
	}

	return &Image{repository{OCIOptions: options, ref: ref, provider: provider}}, nil
}

// Fetch reads the manifests in the image of a release, layer by layer, without a container runtime.
func (i *Image) Fetch(ctx context.Context, release Version) (*bundle.Bundle, error) {
	ref, err := i.resolve(ctx, release)
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

	folder, err := i.folder(files)
	if err != nil {
		return nil, &bundle.InvalidError{File: pinned.String(), Reason: err.Error()}
	}

	return i.bundle(release, pinned, folder, inFolder(files, folder))
}

// Metadata reads the metadata.yaml of a release, or what stands in for it.
func (i *Image) Metadata(ctx context.Context, release Version) ([]byte, error) {
	b, err := i.Fetch(ctx, release)
	if err != nil {
		return nil, err
	}

	return b.Metadata, nil
}

// complete reports whether what the newer layers hold is all that is looked for.
func (i *Image) hasRelease(files map[string][]byte) bool {
	for _, folder := range []string{imageFolder, path.Join(profilesFolder, defaultProfile)} {
		if release := inFolder(files, folder); release[bundle.MetadataFile] != nil && findComponents(release) != "" {
			return true
		}
	}

	return false
}

// folder finds the folder of the release.
func (i *Image) folder(files map[string][]byte) (string, error) {
	var profiles []string

	for name := range files {
		folder := path.Dir(name)
		if folder == imageFolder {
			return imageFolder, nil
		}

		if parent, profile := path.Split(folder); parent == profilesFolder+"/" && !slices.Contains(profiles, profile) {
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

// imageMetadata is what a manifest folder says about itself, in metadata.json or metadata.yaml, in
// either spelling.
type imageMetadata struct {
	// ImageName and SelfImageRef are the image's own reference in the manifests.
	ImageName    string `json:"imageName"`
	SelfImageRef string `json:"selfImageRef"`
	// ProviderVersion and Attributes["version"] are the version, if they say so.
	ProviderVersion string            `json:"providerVersion"`
	Attributes      map[string]string `json:"attributes"`
	// ReleaseSeries is there when metadata.yaml is clusterctl's.
	ReleaseSeries []bundle.ReleaseSeries `json:"releaseSeries"`
}

// bundle makes the bundle of the files in the folder.
func (i *Image) bundle(
	release Version,
	pinned oci.Reference,
	folder string,
	files map[string][]byte,
) (*bundle.Bundle, error) {
	invalid := func(file, format string, args ...any) error {
		return &bundle.InvalidError{
			File:   fmt.Sprintf("%s: /%s", pinned, path.Join(folder, file)),
			Reason: fmt.Sprintf(format, args...),
		}
	}

	name := findComponents(files)
	if name == "" {
		return nil, invalid("", "holds no components; put them into %s", bundle.ComponentsFile)
	}

	var about imageMetadata
	for _, file := range []string{bundle.MetadataFile, "metadata.json"} {
		if err := yaml.Unmarshal(files[file], &about); err != nil {
			return nil, invalid(file, "not valid YAML: %v", err)
		}
	}

	wanted, err := semver.NewVersion(release.Name)
	if err != nil {
		return nil, invalid("", "%s is not a version: %v", release.Name, err)
	}

	for _, says := range []string{about.ProviderVersion, about.Attributes["version"]} {
		if v, err := semver.NewVersion(says); err == nil && !v.Equal(wanted) {
			return nil, invalid(bundle.MetadataFile, "is about version %s, not %s", says, release.Name)
		}
	}

	b := &bundle.Bundle{
		Provider: i.provider,
		Version:  release.Name,
		Source:   pinned.String(),
		Metadata: files[bundle.MetadataFile],
	}

	b.Components = pinOwnImage(files[name], pinned, about.ImageName, about.SelfImageRef)
	if about.ReleaseSeries == nil {
		contract := newestContract(b.Components)
		if contract == "" {
			return nil, invalid(
				bundle.MetadataFile,
				"has no releaseSeries, and no CRD has a label such as cluster.x-k8s.io/v1beta2, so the contract is not known; add clusterctl's metadata.yaml",
			)
		}

		b.Metadata = contractMetadata(wanted, contract)
	}

	for _, file := range slices.Sorted(maps.Keys(files)) {
		if templateName.MatchString(file) {
			b.Templates = append(b.Templates, bundle.File{Name: file, Data: files[file]})
		}
	}

	return b, nil
}

// components is the name of the file of components; empty when there is none.
func findComponents(files map[string][]byte) string {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, bundle.ComponentsFile) || name == "manifests.yaml" || name == "manifests" {
			return name
		}
	}

	return ""
}

// inFolder are the files that lie in a folder itself, by their names.
func inFolder(files map[string][]byte, folder string) map[string][]byte {
	in := map[string][]byte{}

	for name, data := range files {
		if path.Dir(name) == folder {
			in[path.Base(name)] = data
		}
	}

	return in
}

// withOwnImage replaces the image's own references by the one that it was read from.
func pinOwnImage(components []byte, pinned oci.Reference, own ...string) []byte {
	pinned.Tag = "" // the digest says it all, and some runtimes take only one of both

	for _, reference := range own {
		if reference != "" {
			whole := regexp.MustCompile(regexp.QuoteMeta(reference) + `(["'\s]|$)`)
			components = whole.ReplaceAll(components, []byte(pinned.Name()+"${1}"))
		}
	}

	return components
}

// contractLabel is on CRDs and says which contract they serve.
var contractLabel = regexp.MustCompile(`^cluster\.x-k8s\.io/(v[0-9]+((alpha|beta)[0-9]+)?)$`)

// newestContract is the newest contract that the CRDs' labels name: what an image without
// clusterctl's metadata says about it.
func newestContract(components []byte) string {
	parsed, err := bundle.OutlineComponents(components)
	if err != nil {
		return "" // whoever makes the chart says what is wrong
	}

	newest := ""

	for _, doc := range parsed.Documents {
		for label := range doc.Object.GetLabels() {
			match := contractLabel.FindStringSubmatch(label)
			if match != nil && doc.IsCRD() && version.CompareKubeAwareVersionStrings(match[1], newest) > 0 {
				newest = match[1]
			}
		}
	}

	return newest
}

// contractMetadata is clusterctl's metadata for one release alone.
func contractMetadata(v *semver.Version, contract string) []byte {
	return fmt.Appendf(
		nil,
		"apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n- major: %d\n  minor: %d\n  contract: %s\n",
		v.Major(),
		v.Minor(),
		contract,
	)
}
