package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// DefaultHistoryLimit is how many revisions are kept unless Desired says otherwise.
const DefaultHistoryLimit = 10

// Desired is what a release should be.
type Desired struct {
	// Namespace and Name of the release. The namespace exists.
	Namespace, Name string
	// Chart to install. Its CRDs are the caller's to apply, before: they never enter a release.
	Chart *chart.Chart
	// ChartDigest names the chart's archive: "sha256:<hex>".
	ChartDigest string
	// Values in JSON's types. They are the whole truth: nothing is taken over from an earlier
	// revision. They are only read.
	Values map[string]any
	// PostRenderer changes the rendered manifest; nil changes nothing.
	PostRenderer PostRenderer
	// HistoryLimit is how many revisions are kept; 0 means DefaultHistoryLimit. Failed attempts and
	// rollbacks count, so it should be at least 2 × retries + 3, or they push the last healthy
	// revision out.
	HistoryLimit int
}

// PostRenderer changes a manifest after it has been rendered and before it is recorded and applied.
type PostRenderer interface {
	// Render returns the YAML documents to apply instead of those given. The same input gives the
	// same bytes.
	Render(manifest []byte) ([]byte, error)
	// Digest names what Render does: an equal digest means an equal result.
	Digest() string
}

// historyLimit is the limit that a number of revisions, or 0, stands for.
func historyLimit(revisions int) int {
	if revisions > 0 {
		return revisions
	}

	return DefaultHistoryLimit
}

// digestVersion is raised whenever digest comes to mean something else. All releases are then
// upgraded once.
const digestVersion = "v1"

// digest names all that a revision is made from, as a label's value. The version of Kubernetes is
// part of it because templates see it.
func (d Desired) digest(kubernetes string) (string, error) {
	postRenderer := ""
	if d.PostRenderer != nil {
		postRenderer = d.PostRenderer.Digest()
	}

	inputs, err := json.Marshal(map[string]any{ // keys come out sorted, at every level
		"chart":        d.ChartDigest,
		"kubernetes":   kubernetes,
		"postRenderer": postRenderer,
		"values":       d.Values,
	})
	if err != nil {
		return "", fmt.Errorf("digest of release %s/%s: values that are not JSON: %w", d.Namespace, d.Name, err)
	}

	sum := sha256.Sum256(inputs)

	return digestVersion + "-" + labelEncoding.EncodeToString(sum[:]), nil
}

// helmChart is the chart as Helm wants it.
func (d Desired) helmChart() (*helmchart.Chart, error) {
	files := make([]*loader.BufferedFile, 0, len(d.Chart.Files))
	for _, f := range d.Chart.Files {
		files = append(files, &loader.BufferedFile{Name: f.Name, Data: f.Data})
	}

	if err := onlyLocalReferences(d.Chart.File(chart.SchemaFile)); err != nil {
		return nil, err
	}

	return loader.LoadFiles(files)
}

// onlyLocalReferences refuses a values schema that refers to other documents: Helm would fetch
// them, from the network or from disk.
func onlyLocalReferences(schema []byte) error {
	if len(schema) == 0 {
		return nil
	}

	var document any
	if err := json.NewDecoder(bytes.NewReader(schema)).Decode(&document); err != nil {
		return fmt.Errorf("%s is not JSON: %w", chart.SchemaFile, err)
	}

	if ref := remoteReference(document); ref != "" {
		return fmt.Errorf(
			"%s refers to %q: only references within the schema, starting with #, are allowed",
			chart.SchemaFile,
			ref,
		)
	}

	return nil
}

// remoteReference returns the first "$ref" in a JSON document that leads out of it.
func remoteReference(node any) string {
	switch node := node.(type) {
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
			return ref
		}

		for _, child := range node {
			if ref := remoteReference(child); ref != "" {
				return ref
			}
		}
	case []any:
		for _, child := range node {
			if ref := remoteReference(child); ref != "" {
				return ref
			}
		}
	}

	return ""
}
