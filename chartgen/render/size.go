package render

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/helm"
)

// MaxReleaseSize is the largest encoded release that Helm can store: the maximum size of a Secret
// in bytes.
const MaxReleaseSize = 1 << 20

// maxGrowth is how many times as large as a chart's archive its release is at most. In the compressed
// JSON the files are in base64, which hides two of three repetitions from the compression, and so is the
// compressed JSON in the Secret, which makes it a third larger. The manifest repeats the templates. Real
// releases are two to four times as large.
const maxGrowth = 5

// Sizes are the sizes of releases that are too large; 0 for a release that is not.
type Sizes struct {
	// Helm is the size of the release that the helm command creates, if it is larger than MaxReleaseSize, and Operator
	// that of the operator's, which has no templates, files and CRDs, if it is larger than helm.MaxRecord.
	Helm, Operator int
}

// Oversize returns the sizes of the releases of a chart that are too large. It depends on the size of the chart's
// archive how much work that is: usually none.
func Oversize(c *chart.Chart, archive int) (Sizes, error) {
	if archive*maxGrowth <= MaxReleaseSize {
		return Sizes{}, nil
	}

	whole, rendered, err := release(c)
	if err != nil {
		return Sizes{}, err
	}

	found := Sizes{}
	if found.Helm, err = oversize(whole, rendered, MaxReleaseSize); err != nil {
		return found, err
	}

	found.Operator, err = oversize(recorded(whole), rendered, helm.MaxRecord)

	return found, err
}

// release returns what a release of the chart consists of: the chart including its CRDs, and the rendered manifest.
func release(c *chart.Chart) (whole *helm.Chart, rendered string, err error) {
	whole, err = load(&chart.Chart{Metadata: c.Metadata, Files: slices.Concat(c.Files, c.CRDs)})
	if err != nil {
		return nil, "", err
	}

	rendered, err = Manifest(c, "default", nil)

	return whole, rendered, err
}

// releaseData returns a release as JSON.
func releaseData(of *helm.Chart, rendered string) ([]byte, error) {
	data, err := json.Marshal(&helm.Release{
		Name:      of.Metadata.Name,
		Namespace: "default",
		Version:   1,
		Info:      &helm.Info{},
		Chart:     of,
		Manifest:  rendered,
	})
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", of.Metadata.Name, err)
	}

	return data, nil
}

// oversize returns the size of a release if it is larger than allowed, and otherwise 0.
func oversize(of *helm.Chart, rendered string, allowed int) (int, error) {
	data, err := releaseData(of, rendered)
	if err != nil {
		return 0, err
	}

	size := 0

	// Fast compression results in more bytes than Helm's, so a second one is rarely necessary.
	for _, level := range []int{gzip.BestSpeed, gzip.BestCompression} {
		size, err = encodedSize(data, level)
		if err != nil || size <= allowed {
			return 0, err
		}
	}

	return size, nil
}

// encodedSize returns the size of data that is compressed at a level of gzip, in base64.
func encodedSize(data []byte, level int) (int, error) {
	var compressed bytes.Buffer

	w, err := gzip.NewWriterLevel(&compressed, level)
	if err != nil {
		return 0, err
	}

	_, err = w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		return 0, err
	}

	return base64.StdEncoding.EncodedLen(compressed.Len()), nil
}
