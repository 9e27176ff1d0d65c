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
	kubeversion "k8s.io/apimachinery/pkg/version"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// imageFolder is the folder of an image with a provider's manifests.
const imageFolder = "capi-manifests"

// images are a repository with container images of a provider that contain the provider's manifests, one tag for each
// version: in the folder /capi-manifests, with the components in *components.yaml, manifests.yaml or manifests, and
// metadata.yaml, metadata.json or both. In the manifests, the references of the image to itself are replaced by the
// image that they were read from, pinned to its digest.
type images struct{ *repository }

// NewImage returns the source of a provider at an image such as
// registry.example.com/capi/cluster-api-aws-controller, optionally with a tag and a digest. The error
// is of the kind Refused.
func NewImage(address string, provider bundle.Provider, options OCIOptions) (*Source, error) {
	r, err := newRepository(address, provider, options)
	if err != nil {
		return nil, err
	}

	return r.source(images{r}, "image"), nil
}

// Files reads the manifests from the layers of the version's image.
func (i images) Files(ctx context.Context, version Version) (*Files, error) {
	if i.isOther(version) {
		return nil, i.otherVersion(version)
	}

	ref, err := i.resolve(ctx, version)
	if err != nil {
		return nil, err
	}

	pinned, image, err := i.access.Client.Image(ctx, ref)
	if err != nil {
		return nil, damaged(err)
	}

	isComplete := func(found map[string][]byte) bool {
		release := releaseOf(found)
		name, err := Components(i.provider, slices.Collect(maps.Keys(release)))

		return release[bundle.MetadataFile] != nil && (name != "" || err != nil)
	}

	found, err := i.access.Client.Files(ctx, image, []string{imageFolder}, isComplete)
	if err != nil {
		return nil, damaged(err)
	}

	if len(found) == 0 {
		return nil, &transport.Error{
			Kind: transport.Invalid, Place: pinned.String(), Problem: "has no folder /" + imageFolder,
			Fix: "choose an image with a provider's manifests, or another kind of source",
		}
	}

	return i.release(version, pinned, releaseOf(found))
}

// releaseOf returns the files in the folder of an image by the names that they have in a release.
func releaseOf(found map[string][]byte) map[string][]byte {
	files := map[string][]byte{}

	for name, data := range found {
		if path.Dir(name) == imageFolder {
			files[path.Base(name)] = data
		}
	}

	for _, name := range []string{"manifests.yaml", "manifests"} {
		if data, exists := files[name]; exists {
			delete(files, name)

			files[bundle.ComponentsFile] = data
		}
	}

	return files
}

// imageMetadata is the content of metadata.yaml and metadata.json in the folder. All but the series is optional.
type imageMetadata struct {
	// ImageName is the image's own reference in the manifests.
	ImageName string `json:"imageName"`
	// ProviderName may follow the name of the project, as in cluster-api-provider-aws.
	ProviderName string `json:"providerName"`
	// ProviderType is, for example, infrastructure.
	ProviderType    string `json:"providerType"`
	ProviderVersion string `json:"providerVersion"`
	// ReleaseSeries is set if the file is clusterctl's metadata.yaml.
	ReleaseSeries []clusterctlv1.ReleaseSeries `json:"releaseSeries"`
}

// release returns the files of a folder as those of a release: with the image's own digest, and with metadata that
// names the contract.
func (i images) release(version Version, image oci.Reference, files map[string][]byte) (*Files, error) {
	place := fmt.Sprintf("%s: /%s", image, imageFolder)
	invalid := func(file, format string, args ...any) error {
		return &transport.Error{Kind: transport.Invalid, Place: place + "/" + file, Problem: fmt.Sprintf(format, args...)}
	}

	var metadata imageMetadata

	for _, file := range []string{bundle.MetadataFile, "metadata.json"} {
		if _, err := limit.Document(string(files[file])); err != nil {
			return nil, invalid(file, "%v", err)
		}

		if err := yaml.Unmarshal(files[file], &metadata); err != nil {
			return nil, invalid(file, "is not valid YAML: %v", err)
		}
	}

	requested, err := semver.NewVersion(version.Name)
	if err != nil {
		return nil, invalid("", "%s is not a version: %v", version.Name, err)
	}

	if other := metadata.differences(i.provider, requested); len(other) > 0 {
		return nil, invalid(bundle.MetadataFile,
			"is about %s; correct the image, or the name and the version of the provider", strings.Join(other, ", and "))
	}

	name, err := Components(i.provider, slices.Sorted(maps.Keys(files)))
	if err != nil {
		return nil, invalid("", "%v", err)
	}

	if name == "" {
		return newFiles(place, image.String(), files), nil // which are incomplete
	}

	if files[name], err = pinOwnImage(files[name], image, metadata.ImageName); err != nil {
		return nil, invalid(name, "%v", err)
	}

	if metadata.ReleaseSeries == nil {
		contract := newestContract(files[name])
		if contract == "" {
			return nil, invalid(bundle.MetadataFile, "has no releaseSeries, and no CRD has a label such as "+
				"cluster.x-k8s.io/v1beta2, so the contract is not known; add clusterctl's metadata.yaml")
		}

		files[bundle.MetadataFile] = generateMetadata(requested, contract)
	}

	return newFiles(place, image.String(), files), nil
}

// differences lists the fields of the metadata that contradict the provider or the version. Empty fields contradict
// nothing.
func (m imageMetadata) differences(provider bundle.Provider, version *semver.Version) []string {
	const maxQuoted = 64 // bytes of what an image contains

	var found []string

	if name := m.ProviderName; name != "" && name != provider.Name && !strings.HasSuffix(name, "-"+provider.Name) {
		found = append(found, fmt.Sprintf("the provider %.*q, not %s", maxQuoted, name, provider.Name))
	}

	wanted := v1alpha2.ProviderType(provider.Type)
	if t := m.ProviderType; t != "" && !strings.EqualFold(t, wanted.Name()) && !strings.EqualFold(t, string(wanted)) {
		found = append(found, fmt.Sprintf("a provider of the type %.*q, not %s", maxQuoted, t, wanted.Name()))
	}

	if v, err := semver.NewVersion(m.ProviderVersion); err == nil && !v.Equal(version) {
		found = append(found, fmt.Sprintf("version %.*s, not %s", maxQuoted, m.ProviderVersion, version.Original()))
	}

	return found
}

// pinOwnImage replaces the references of the image to itself by its reference with the digest.
func pinOwnImage(components []byte, pinned oci.Reference, reference string) ([]byte, error) {
	const maxReferences = 1000

	if reference == "" {
		return components, nil
	}

	own := regexp.MustCompile(regexp.QuoteMeta(reference) + `(["'\s]|$)`)
	if len(own.FindAllIndex(components, maxReferences+1)) > maxReferences {
		return nil, fmt.Errorf("has more than %d references to the image", maxReferences)
	}

	pinned.Tag = "" // some container runtimes reject references with both a tag and a digest

	return own.ReplaceAll(components, []byte(pinned.Name()+"${1}")), nil
}

// contractLabel matches the labels of CRDs that name a contract they implement.
var contractLabel = regexp.MustCompile(`^cluster\.x-k8s\.io/(v[0-9]+((alpha|beta)[0-9]+)?)$`)

// newestContract returns the newest contract in the labels of CRDs, which is the contract of an image
// without clusterctl's metadata. It is empty if there is none, or if the components cannot be parsed:
// generating the chart returns that error.
func newestContract(components []byte) string {
	parsed, err := bundle.ParseComponents(components)
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
			if match != nil && kubeversion.CompareKubeAwareVersionStrings(match[1], newest) > 0 {
				newest = match[1]
			}
		}
	}

	return newest
}

// generateMetadata returns clusterctl's metadata.yaml for a single release.
func generateMetadata(v *semver.Version, contract string) []byte {
	return fmt.Appendf(nil, "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n"+
		"- major: %d\n  minor: %d\n  contract: %s\n", v.Major(), v.Minor(), contract)
}
