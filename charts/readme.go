package charts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"

	"helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// value is a line in the README's table.
type value struct{ Key, Default, Description string }

// Readme makes the chart's README of its template and of the comments in values.yaml.
func Readme(folder string, c *chart.Chart) ([]byte, error) {
	values, err := describe(c)
	if err != nil {
		return nil, err
	}

	page, err := template.ParseFiles(filepath.Join(folder, "README.md.gotmpl"))
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer

	err = page.Execute(
		&out,
		map[string]any{"Name": c.Metadata.Name, "Description": c.Metadata.Description, "Values": values},
	)

	return out.Bytes(), err
}

// describe lists the values in the order of values.yaml. A key with a comment is a value; one
// without is a group of values.
func describe(c *chart.Chart) ([]value, error) {
	for _, file := range c.Raw {
		if file.Name == "values.yaml" {
			root, err := yaml.Parse(string(file.Data))
			if err != nil {
				return nil, fmt.Errorf("read values.yaml: %w", err)
			}

			return walk(nil, "", root.YNode())
		}
	}

	return nil, fmt.Errorf("the chart has no values.yaml")
}

func walk(values []value, prefix string, node *yaml.Node) ([]value, error) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, content := node.Content[i], node.Content[i+1]
		path := prefix + key.Value
		comment := key.HeadComment
		// A paragraph of its own above the first key is about the file.
		if at := strings.LastIndex(comment, "\n\n"); at >= 0 {
			comment = comment[at+2:]
		}

		if comment == "" && content.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("values.yaml, line %d: %s has no comment that describes it", key.Line, path)
		}

		if comment != "" && (content.Kind != yaml.MappingNode || !commented(content)) {
			var plain any
			if err := content.Decode(&plain); err != nil {
				return nil, err
			}

			text, err := json.Marshal(plain)
			if err != nil {
				return nil, err
			}

			values = append(values, value{path, string(text), sentence(comment)})

			continue
		}

		var err error
		if values, err = walk(values, path+".", content); err != nil {
			return nil, err
		}
	}

	return values, nil
}

// commented reports whether the members of a mapping are described one by one.
func commented(node *yaml.Node) bool {
	return len(node.Content) > 0 && node.Content[0].HeadComment != ""
}

// sentence makes one line of a comment.
func sentence(comment string) string {
	lines := strings.Split(comment, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	}

	return strings.ReplaceAll(strings.Join(lines, " "), "|", `\|`)
}
