package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// joinCRDs joins the lines of each paragraph in the descriptions of the CRDs: controller-gen keeps the line breaks of
// comments, and kubectl explain shows them in the middle of sentences.
func joinCRDs() error {
	files, err := filepath.Glob(filepath.Join(folder, "crds/*.yaml"))
	if err != nil {
		return err
	}

	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}

		var definition map[string]any
		if err := yaml.UnmarshalStrict(data, &definition); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}

		joinDescriptions(definition)

		data, err = yaml.Marshal(definition)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}

		if err := os.WriteFile(file, append([]byte("---\n"), data...), 0o644); err != nil {
			return err
		}
	}

	return nil
}

// joinDescriptions joins the lines of all descriptions in a value.
func joinDescriptions(value any) {
	switch value := value.(type) {
	case map[string]any:
		if description, isText := value["description"].(string); isText {
			value["description"] = joinLines(description)
		}

		for _, field := range value {
			joinDescriptions(field)
		}
	case []any:
		for _, item := range value {
			joinDescriptions(item)
		}
	}
}

// ownLine matches a line that does not continue the one before it: an empty or indented one, an item of a list, or a
// row of a table.
var ownLine = regexp.MustCompile(`^($|\s|[-*] |\d+\. |\|)`)

// joinLines joins the lines of each paragraph.
func joinLines(text string) string {
	lines := strings.Split(text, "\n")
	joined := lines[0]

	for i, line := range lines[1:] {
		previous := lines[i]
		if ownLine.MatchString(line) || previous == "" || strings.HasPrefix(previous, "|") {
			joined += "\n" + line
		} else {
			joined += " " + line
		}
	}

	return joined
}
