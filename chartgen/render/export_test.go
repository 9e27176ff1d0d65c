package render

import (
	"compress/gzip"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// ReleaseSize returns the number of bytes that Helm stores for a release of the chart, without values and notes, which
// usually take less than 2 KiB.
func ReleaseSize(c *chart.Chart) (int, error) {
	whole, rendered, err := release(c)
	if err != nil {
		return 0, err
	}

	data, err := releaseData(whole, rendered)
	if err != nil {
		return 0, err
	}

	return encodedSize(data, gzip.BestCompression)
}
