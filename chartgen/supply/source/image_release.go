package source

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

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
	// Name and ProviderName are the provider's name, which may follow that of its project, as in
	// cluster-api-provider-aws; optional.
	Name         string `json:"name"`
	ProviderName string `json:"providerName"`
	// ProviderType and Attributes["type"] are its type, such as infrastructure; optional.
	ProviderType string `json:"providerType"`
	// ProviderVersion and Attributes["version"] are the version; optional.
	ProviderVersion string            `json:"providerVersion"`
	Attributes      map[string]string `json:"attributes"`
	// ReleaseSeries is set if the file is clusterctl's metadata.yaml.
	ReleaseSeries []bundle.ReleaseSeries `json:"releaseSeries"`
}

// bundle returns the bundle of a version from the files of its release.
func (i *Image) bundle(version Version, release imageRelease) (*bundle.Bundle, error) {
	name, err := findComponents(i.provider, release.files)
	if err != nil {
		return nil, release.invalid("", "%v", err)
	}

	if name == "" {
		return nil, release.invalid("", "holds no components; put them into %s", bundle.ComponentsFile)
	}

	var metadata imageMetadata

	for _, file := range []string{bundle.MetadataFile, "metadata.json"} {
		if _, err := limit.Document(string(release.files[file])); err != nil {
			return nil, release.invalid(file, "%v", err)
		}

		if err := yaml.Unmarshal(release.files[file], &metadata); err != nil {
			return nil, release.invalid(file, "not valid YAML: %v", err)
		}
	}

	requested, err := semver.NewVersion(version.Name)
	if err != nil {
		return nil, release.invalid("", "%s is not a version: %v", version.Name, err)
	}

	if other := metadata.differences(i.provider, requested); len(other) > 0 {
		return nil, release.invalid(bundle.MetadataFile,
			"is about %s; correct the image, or the name and the version of the provider", strings.Join(other, ", and "))
	}

	components, err := pinOwnImage(release.files[name], release.image, metadata.ImageName, metadata.SelfImageRef)
	if err != nil {
		return nil, release.invalid(name, "%v", err)
	}

	b := &bundle.Bundle{
		Provider:   i.provider,
		Version:    version.Name,
		Source:     release.image.String(),
		Metadata:   release.files[bundle.MetadataFile],
		Components: components,
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
		if isTemplate(i.provider, file) {
			b.Templates = append(b.Templates, bundle.File{Name: file, Data: release.files[file]})
		}
	}

	return b, checkTemplates(b.Templates)
}

// differences describes what the metadata says of the manifests that is not true of a provider's version. What it does
// not say is not compared.
func (m imageMetadata) differences(provider bundle.Provider, version *semver.Version) []string {
	const maxQuoted = 64 // bytes of what an image contains

	var found []string

	for _, name := range []string{m.Name, m.ProviderName} {
		if name != "" && name != provider.Name && !strings.HasSuffix(name, "-"+provider.Name) {
			found = append(found, fmt.Sprintf("the provider %.*q, not %s", maxQuoted, name, provider.Name))
		}
	}

	wanted := v1alpha2.ProviderType(provider.Type)

	for _, t := range []string{m.ProviderType, m.Attributes["type"]} {
		if t != "" && !strings.EqualFold(t, wanted.Name()) && !strings.EqualFold(t, string(wanted)) {
			found = append(found, fmt.Sprintf("a provider of the type %.*q, not %s", maxQuoted, t, wanted.Name()))
		}
	}

	for _, text := range []string{m.ProviderVersion, m.Attributes["version"]} {
		if v, err := semver.NewVersion(text); err == nil && !v.Equal(version) {
			found = append(found, fmt.Sprintf("version %.*s, not %s", maxQuoted, text, version.Original()))
		}
	}

	return found
}

// findComponents returns the name of the file with the provider's components; empty if there is none. The
// error says which files could be meant.
func findComponents(provider bundle.Provider, files map[string][]byte) (string, error) {
	names := slices.Sorted(maps.Keys(files))

	name, err := chooseComponents(provider, names)
	if name != "" || err != nil {
		return name, err
	}

	for _, name := range []string{"manifests", "manifests.yaml"} {
		if files[name] != nil {
			return name, nil
		}
	}

	return "", nil
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
func pinOwnImage(components []byte, pinned oci.Reference, references ...string) ([]byte, error) {
	const maxReferences = 1000

	pinned.Tag = "" // some container runtimes reject references with both a tag and a digest

	for _, reference := range references {
		if reference == "" {
			continue
		}

		complete := regexp.MustCompile(regexp.QuoteMeta(reference) + `(["'\s]|$)`)
		if len(complete.FindAllIndex(components, maxReferences+1)) > maxReferences {
			return nil, fmt.Errorf("has more than %d references to the image", maxReferences)
		}

		components = complete.ReplaceAll(components, []byte(pinned.Name()+"${1}"))
	}

	return components, nil
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
