package signature

import (
	"context"
	"encoding/json"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/chartgen/oci"
)

// A signature binds a digest, not a tag: a user who can write to a registry can put an old, signed
// release under the tag of a new one. So where the signed content names a version, that must be the
// requested one.

// otherVersion returns the first of some signed texts that is a complete version other than the wanted
// one; empty if there is none, or if any version is wanted.
func otherVersion(wanted string, signed ...string) string {
	for _, text := range signed {
		if version := parseVersion(text); wanted != "" && version != "" && version != parseVersion(wanted) {
			return text
		}
	}

	return ""
}

// parseVersion returns a complete version without its "v", or "" for any other text.
func parseVersion(text string) string {
	version := strings.TrimPrefix(oci.ChartVersion(text), "v")
	if _, err := semver.StrictNewVersion(version); err != nil {
		return ""
	}

	return version
}

// tagOf returns the tag in the name of an artifact; empty if it has none.
func tagOf(name string) string {
	name, _, _ = strings.Cut(path.Base(name), "@")
	_, tag, _ := strings.Cut(name, ":")

	return tag
}

// checkManifest returns an error of the kind transport.Unverified if the annotation of a manifest, which its digest
// covers, names another version.
func checkManifest(ctx context.Context, client *oci.Client, ref oci.Reference, version string) error {
	_, data, err := client.Manifest(ctx, ref)
	if err != nil {
		return err
	}

	var manifest struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return newUntrustedError(ref, "its manifest is not JSON")
	}

	if other := otherVersion(version, manifest.Annotations[ocispec.AnnotationVersion]); other != "" {
		return newVersionError(ref, other, version)
	}

	return nil
}

// newVersionError returns the error of an artifact that was signed as another version.
func newVersionError(ref oci.Reference, signed, wanted string) error {
	return newUntrustedError(ref, "it was signed as version %s, not %s; find out who moved the tag", signed, wanted)
}
