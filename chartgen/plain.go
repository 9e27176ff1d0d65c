package chartgen

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// PlainCRDs returns the CustomResourceDefinitions of a plain chart, which Build did not return, and of those
// of its subcharts that the values enable, as Helm would install them: each in a file that is named after it,
// as in a chart of Build, and with additional labels. Of definitions with the same name, the first one counts.
// The error is a *bundle.InvalidError. Subcharts that are archives themselves are not read; `helm package`
// unpacks them.
func PlainCRDs(c *chart.Chart, values map[string]any, labels map[string]string) (files []chart.File, err error) {
	// Helm's library panics about some invalid charts.
	defer func() {
		if recover() != nil {
			files, err = nil, invalidPlain(chart.MetadataFile, "its dependencies cannot be resolved")
		}
	}()

	loaded, err := loadPlain(c)
	if err != nil {
		return nil, err
	}

	// It removes the subcharts that are not enabled.
	if err := helm.ProcessDependencies(loaded, values); err != nil {
		return nil, invalidPlain(chart.MetadataFile, "its dependencies cannot be resolved: "+err.Error())
	}

	total := 0

	for _, source := range loaded.CRDObjects() {
		size, err := limit.Documents(string(source.File.Data))
		if err != nil {
			return nil, invalidPlain(source.Filename, "it "+err.Error())
		}

		if total += size; total > limit.MaxValues {
			return nil, invalidPlain(source.Filename, fmt.Sprintf("the CRDs up to it have more than %d values", limit.MaxValues))
		}

		if err := appendPlainCRDs(&files, source, labels); err != nil {
			return nil, err
		}
	}

	return files, nil
}

// loadPlain returns what decides on the CRDs of a chart: metadata, values and CRDs of all its parts.
func loadPlain(c *chart.Chart) (*helm.Chart, error) {
	var (
		buffered []*helm.BufferedFile
		total    int
	)

	for _, f := range slices.Concat(c.Files, c.CRDs) {
		parsed := slices.Contains([]string{chart.MetadataFile, chart.ValuesFile, "requirements.yaml"}, path.Base(f.Name))
		isCRD := strings.HasPrefix(f.Name, "crds/") || strings.Contains(f.Name, "/crds/")

		if !parsed && !isCRD {
			continue
		}

		if parsed {
			size, err := limit.Document(string(f.Data))
			if err != nil {
				return nil, invalidPlain(f.Name, "it "+err.Error())
			}

			total += size
		}

		buffered = append(buffered, &helm.BufferedFile{Name: f.Name, Data: f.Data})
	}

	loaded, err := helm.Load(buffered)
	if err != nil {
		return nil, invalidPlain(chart.MetadataFile, "the chart cannot be loaded: "+err.Error())
	}

	// The values are copied for each part, and a chart can be a part many times, under aliases.
	if countParts(loaded, maxCopied)*total > maxCopied {
		return nil, invalidPlain(chart.MetadataFile, "it has too many dependencies for the size of the values")
	}

	return loaded, nil
}

// maxCopied limits how many values are copied to find out which subcharts are enabled.
const maxCopied = 1 << 20

// countParts returns the number of charts that a chart consists of, with each alias, but stops counting at
// the limit.
func countParts(c *helm.Chart, limit int) int {
	count := 1

	for _, part := range c.Dependencies() {
		times := 0

		for _, dependency := range c.Metadata.Dependencies {
			if dependency.Name == part.Name() {
				times++
			}
		}

		for range max(times, 1) {
			if count >= limit {
				return limit
			}

			count += countParts(part, limit-count)
		}
	}

	return count
}

// appendPlainCRDs appends the CRDs in a file, unless there are some with the same names already.
func appendPlainCRDs(files *[]chart.File, source helm.CRD, labels map[string]string) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(source.File.Data)))

	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return invalidPlain(source.Filename, err.Error())
		}

		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return invalidPlain(source.Filename, err.Error())
		}

		if len(object.Object) == 0 {
			continue // only comments
		}

		if object.GetKind() != "CustomResourceDefinition" || object.GetName() == "" {
			return invalidPlain(source.Filename, fmt.Sprintf("it contains %q of kind %q, but only CustomResourceDefinitions "+
				"may be in crds/", object.GetName(), object.GetKind()))
		}

		file, err := plainCRDFile(object, labels)
		if err != nil {
			return invalidPlain(source.Filename, err.Error())
		}

		if !slices.ContainsFunc(*files, func(f chart.File) bool { return f.Name == file.Name }) {
			*files = append(*files, file)
		}
	}
}

// plainCRDFile returns the file of a CRD.
func plainCRDFile(object *unstructured.Unstructured, additional map[string]string) (chart.File, error) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}

	for key, value := range additional {
		labels[key] = value
	}

	object.SetLabels(labels)

	data, err := yaml.Marshal(object.Object)

	return chart.File{Name: "crds/" + object.GetName() + ".yaml", Data: data}, err
}

func invalidPlain(file, reason string) error { return &bundle.InvalidError{File: file, Reason: reason} }
