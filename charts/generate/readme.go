package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chart"
)

// value is a row of the README's table of values.
type value struct{ Key, Default, Description string }

// readmeOf generates the chart's README from its template and the comments in values.yaml.
func readmeOf(folder string, c *chart.Chart) ([]byte, error) {
	values, err := describe(c)
	if err != nil {
		return nil, err
	}

	page, err := template.ParseFiles(filepath.Join(folder, "README.md.gotmpl"))
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer

	err = page.Execute(&out, map[string]any{
		"Name":        c.Metadata.Name,
		"Description": c.Metadata.Description,
		"Values":      values,
	})

	return out.Bytes(), err
}

// describe returns the values in the order of values.yaml. A key with a comment is a value; a key
// without one is a group of values.
func describe(c *chart.Chart) ([]value, error) {
	for _, file := range c.Raw {
		if file.Name == "values.yaml" {
			var root yaml.Node
			if err := yaml.Unmarshal(file.Data, &root); err != nil {
				return nil, fmt.Errorf("read values.yaml: %w", err)
			}

			return collect(nil, "", root.Content[0])
		}
	}

	return nil, errors.New("the chart has no values.yaml")
}

// collect appends the values in a mapping, whose paths have the given prefix.
func collect(values []value, prefix string, mapping *yaml.Node) ([]value, error) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, content := mapping.Content[i], mapping.Content[i+1]
		path := prefix + key.Value
		comment := description(key)

		if comment == "" && content.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("values.yaml, line %d: %s has no comment that describes it", key.Line, path)
		}

		if comment == "" || hasComments(content) {
			var err error
			if values, err = collect(values, path+".", content); err != nil {
				return nil, err
			}

			continue
		}

		defaultValue, err := toJSON(content)
		if err != nil {
			return nil, err
		}

		values = append(values, value{path, defaultValue, oneLine(comment)})
	}

	return values, nil
}

// description returns the comment above a key.
func description(key *yaml.Node) string {
	// In the comment above the first key, the first paragraph describes the file.
	if at := strings.LastIndex(key.HeadComment, "\n\n"); at >= 0 {
		return key.HeadComment[at+2:]
	}

	return key.HeadComment
}

// hasComments reports whether node is a mapping with a comment above each key.
func hasComments(node *yaml.Node) bool {
	return node.Kind == yaml.MappingNode && len(node.Content) > 0 && node.Content[0].HeadComment != ""
}

func toJSON(node *yaml.Node) (string, error) {
	var decoded any
	if err := node.Decode(&decoded); err != nil {
		return "", err
	}

	text, err := json.Marshal(decoded)

	return string(text), err
}

// oneLine joins the lines of a comment for a cell of a table.
func oneLine(comment string) string {
	lines := strings.Split(comment, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	}

	return strings.ReplaceAll(strings.Join(lines, " "), "|", `\|`)
}
