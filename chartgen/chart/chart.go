// Package chart is a Helm chart in memory and as an archive. It knows the archive's wire format, so
// that the same chart is the same bytes on every machine, and nothing of how a chart comes to be or
// of what Helm does with it.
package chart

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Names of files that a chart has by Helm's rules.
const (
	MetadataFile  = "Chart.yaml"
	ValuesFile    = "values.yaml"
	SchemaFile    = "values.schema.json"
	ReadmeFile    = "README.md"
	NotesFile     = "templates/NOTES.txt"
	TemplatesDir  = "templates/"
	crdsDirectory = "crds/"
)

// Metadata is the content of Chart.yaml, as far as Capstan writes it.
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

// File is one file of a chart, its name relative to the chart's root, with forward slashes.
type File struct {
	Name string
	Data []byte
}

// Chart is a Helm chart. Once made it does not change, so that many can use it at a time.
type Chart struct {
	Metadata Metadata
	// Files are all files except those in crds/, Chart.yaml among them, sorted by name.
	Files []File
	// CRDs are the files in crds/, sorted by name. They stand apart because they never enter a Helm
	// release.
	CRDs []File
}

// New makes a chart of metadata and files, in any order. The files in crds/ become CRDs, Chart.yaml
// is written from the metadata.
func New(metadata Metadata, files []File) (*Chart, error) {
	data, err := yaml.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", metadata.Name, err)
	}

	return fromFiles(metadata, append([]File{{Name: MetadataFile, Data: data}}, files...)), nil
}

// fromFiles sorts the files into a chart.
func fromFiles(metadata Metadata, files []File) *Chart {
	c := &Chart{Metadata: metadata}

	for _, f := range files {
		if strings.HasPrefix(f.Name, crdsDirectory) {
			c.CRDs = append(c.CRDs, f)
		} else {
			c.Files = append(c.Files, f)
		}
	}

	sortFiles(c.Files)
	sortFiles(c.CRDs)

	return c
}

// File gives the content of the named file; nil when the chart has none.
func (c *Chart) File(name string) []byte {
	for _, f := range c.Files {
		if f.Name == name {
			return f.Data
		}
	}

	return nil
}

// Filename is the archive's usual file name, "<name>-<version>.tgz".
func (c *Chart) Filename() string {
	return c.Metadata.Name + "-" + c.Metadata.Version + ".tgz"
}
