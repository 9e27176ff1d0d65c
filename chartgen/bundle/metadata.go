package bundle

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"
)

// metadataGroup is the API group of metadata.yaml; files that leave out the kind or the group are
// taken as they are.
const metadataGroup = "clusterctl.cluster.x-k8s.io"

// Metadata is the content of metadata.yaml, as the clusterctl provider contract defines it.
type Metadata struct {
	APIVersion    string          `json:"apiVersion"`
	Kind          string          `json:"kind"`
	ReleaseSeries []ReleaseSeries `json:"releaseSeries"`
}

// ReleaseSeries maps all patch releases of one minor version to a Cluster API contract.
type ReleaseSeries struct {
	Major    uint64 `json:"major"`
	Minor    uint64 `json:"minor"`
	Contract string `json:"contract"`
}

// ParseMetadata reads metadata.yaml. Its error is an *InvalidError.
func ParseMetadata(data []byte) (*Metadata, error) {
	m := &Metadata{}
	if err := yaml.Unmarshal(data, m); err != nil {
		return nil, &InvalidError{File: MetadataFile, Reason: "not valid YAML: " + yamlReason(err), Err: err}
	}

	if m.Kind != "" && m.Kind != "Metadata" || m.APIVersion != "" && !strings.HasPrefix(m.APIVersion, metadataGroup+"/") {
		return nil, &InvalidError{
			File:   MetadataFile,
			Reason: fmt.Sprintf("holds %s of %s, expected Metadata of %s", m.Kind, m.APIVersion, metadataGroup),
		}
	}

	if len(m.ReleaseSeries) == 0 {
		return nil, &InvalidError{
			File:   MetadataFile,
			Reason: "lists no releaseSeries, so no version has a contract; publish the provider's own metadata.yaml",
		}
	}

	return m, nil
}

// Contract is the Cluster API contract of a version, for example "v1beta2". A version whose series
// is not listed has none: that is an *InvalidError, as in clusterctl.
func (m *Metadata) Contract(version string) (string, error) {
	v, err := semver.NewVersion(version)
	if err != nil {
		return "", fmt.Errorf("version %q is not a semantic version: %w", version, err)
	}

	for _, s := range m.ReleaseSeries {
		if s.Major == v.Major() && s.Minor == v.Minor() {
			return s.Contract, nil
		}
	}

	return "", &InvalidError{
		File: MetadataFile,
		Reason: fmt.Sprintf(
			"has no releaseSeries for %d.%d, so the contract of %s is not known; use the metadata.yaml published with that version",
			v.Major(),
			v.Minor(),
			version,
		),
	}
}

// yamlReason is a YAML library's message on one line, without its prefixes.
func yamlReason(err error) string {
	reason := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	reason = strings.TrimPrefix(reason, "error unmarshaling JSON: ")
	reason = strings.TrimPrefix(reason, "while decoding JSON: ")

	return strings.Join(strings.Fields(strings.TrimPrefix(reason, "yaml: ")), " ")
}
