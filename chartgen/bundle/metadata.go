package bundle

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// metadataGroup is the API group of metadata.yaml. Files without a kind or an API version are
// accepted.
const metadataGroup = "clusterctl.cluster.x-k8s.io"

// Metadata is the content of metadata.yaml, as defined by the clusterctl provider contract.
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

// ParseMetadata parses metadata.yaml. Errors are of type *InvalidError.
func ParseMetadata(data []byte) (*Metadata, error) {
	if _, err := limit.Document(string(data)); err != nil {
		return nil, &InvalidError{File: MetadataFile, Reason: err.Error(), Err: err}
	}

	m := &Metadata{}
	if err := yaml.Unmarshal(data, m); err != nil {
		return nil, &InvalidError{File: MetadataFile, Reason: "not valid YAML: " + yamlReason(err), Err: err}
	}

	otherKind := m.Kind != "" && m.Kind != "Metadata"
	otherGroup := m.APIVersion != "" && !strings.HasPrefix(m.APIVersion, metadataGroup+"/")

	if otherKind || otherGroup {
		return nil, &InvalidError{
			File:   MetadataFile,
			Reason: fmt.Sprintf("contains %s of %s, expected Metadata of %s", m.Kind, m.APIVersion, metadataGroup),
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

// Contract returns the Cluster API contract of a version, for example "v1beta2". Like clusterctl,
// it fails if the version's release series is not listed, with an *InvalidError.
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
		Reason: fmt.Sprintf("has no releaseSeries for %d.%d, so the contract of %s is unknown; "+
			"use the metadata.yaml published with that version", v.Major(), v.Minor(), version),
	}
}

// yamlReason returns the message of a YAML library on one line, without its prefixes.
func yamlReason(err error) string {
	reason := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	reason = strings.TrimPrefix(reason, "error unmarshaling JSON: ")
	reason = strings.TrimPrefix(reason, "while decoding JSON: ")

	return strings.Join(strings.Fields(strings.TrimPrefix(reason, "yaml: ")), " ")
}
