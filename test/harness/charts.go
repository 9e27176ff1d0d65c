package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// PushChart builds the chart of a release, and pushes it to charts/<label> in a registry without TLS.
func PushChart(ctx context.Context, registry string, release *Release) error {
	made, err := chartgen.Build(release.Bundle)
	if err != nil {
		return err
	}

	c, err := oci.NewClient(oci.Options{})
	if err != nil {
		return err
	}

	ref, err := oci.Parse("http://" + registry + "/charts/" + release.Bundle.Provider.Label + ":" +
		oci.ChartTag(made.Metadata.Version))
	if err != nil {
		return err
	}

	_, err = c.PushChart(ctx, ref, made)

	return err
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Documented returns the YAML blocks below a heading of a page in docs. It is an error if there are none.
func Documented(root, page, heading string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	if err != nil {
		return nil, err
	}

	_, section, _ := strings.Cut(string(text), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")

	var blocks []string
	for _, match := range yamlBlock.FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, match[1])
	}

	if len(blocks) == 0 {
		return nil, fmt.Errorf("docs/%s has no YAML below the heading %s", page, heading)
	}

	return blocks, nil
}
