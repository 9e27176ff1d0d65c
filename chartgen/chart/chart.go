// Package chart represents a Helm chart in memory and reads and writes chart archives. The same
// chart is packed into the same bytes on every machine. The package does not know how charts are
// built or rendered.
package chart

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"
)

// Names of files in a chart, as Helm defines them.
const (
	MetadataFile  = "Chart.yaml"
	ValuesFile    = "values.yaml"
	SchemaFile    = "values.schema.json"
	ReadmeFile    = "README.md"
	TemplatesDir  = "templates/"
	crdsDirectory = "crds/"
)

// Metadata is the content of Chart.yaml, limited to the fields that Capstan uses.
type Metadata struct {
	APIVersion  string            `json:"apiVersion"`
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	AppVersion  string            `json:"appVersion,omitempty"`
	Description string            `json:"description,omitempty"`
	Type        string            `json:"type,omitempty"`
	Keywords    []string          `json:"keywords,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// chartName matches what Helm accepts as the name of a chart.
var chartName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// check returns an error if name and version are not what Helm accepts: they become parts of file
// names.
func (m *Metadata) check() error {
	if !chartName.MatchString(m.Name) {
		return fmt.Errorf("name %.100q is not the name of a chart: use letters, digits, dots, dashes and underscores",
			m.Name)
	}

	if _, err := semver.NewVersion(m.Version); err != nil {
		return fmt.Errorf("version %.100q is not a semantic version such as 1.2.3", m.Version)
	}

	return nil
}

// File is one file of a chart. Its name is relative to the chart's root, with forward slashes.
type File struct {
	Name string
	Data []byte

	json *keptJSON // nil for files that are no CRDs
}

// Chart is a Helm chart. Treat it as immutable: charts are cached and shared between goroutines.
type Chart struct {
	Metadata Metadata
	// Files are all files outside crds/, including Chart.yaml, sorted by name.
	Files []File
	// CRDs are the files in crds/, sorted by name. They are kept apart because they are never part
	// of a Helm release.
	CRDs []File
}

// New returns a chart with the given metadata and files, which may be in any order. Files in crds/
// become CRDs, and Chart.yaml is generated from the metadata.
func New(metadata Metadata, files []File) (*Chart, error) {
	data, err := yaml.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", metadata.Name, err)
	}

	return fromFiles(metadata, append([]File{{Name: MetadataFile, Data: data}}, files...)), nil
}

// fromFiles returns a chart whose Chart.yaml is among the files.
func fromFiles(metadata Metadata, files []File) *Chart {
	c := &Chart{Metadata: metadata}

	for _, f := range files {
		if strings.HasPrefix(f.Name, crdsDirectory) {
			if f.json == nil {
				f.json = &keptJSON{}
			}

			c.CRDs = append(c.CRDs, f)
		} else {
			c.Files = append(c.Files, f)
		}
	}

	sortFiles(c.Files)
	sortFiles(c.CRDs)

	return c
}

// File returns the content of the named file, or nil if the chart has no such file outside crds/.
func (c *Chart) File(name string) []byte {
	for _, f := range c.Files {
		if f.Name == name {
			return f.Data
		}
	}

	return nil
}

// Filename returns the usual file name of the archive, "<name>-<version>.tgz".
func (c *Chart) Filename() string {
	return c.Metadata.Name + "-" + c.Metadata.Version + ".tgz"
}
