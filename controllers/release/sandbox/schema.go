package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// checkReferences returns an error if a values schema refers to other documents. Helm would read them
// from the network or from disk, which fails in this process.
func checkReferences(schema []byte) error {
	if len(schema) == 0 {
		return nil
	}

	var document any
	if err := json.NewDecoder(bytes.NewReader(schema)).Decode(&document); err != nil {
		return fmt.Errorf("%s is not JSON: %w", chart.SchemaFile, err)
	}

	if ref := externalReference(document); ref != "" {
		return fmt.Errorf("%s refers to %q: only references within the schema, starting with #, are allowed",
			chart.SchemaFile, ref)
	}

	return nil
}

// referring are the keywords whose value is the address of another schema.
var referring = []string{"$ref", "$dynamicRef", "$recursiveRef"}

// drafts are the versions of JSON Schema that the validator has built in.
var drafts = []string{
	"http://json-schema.org/schema",
	"http://json-schema.org/draft-04/schema",
	"http://json-schema.org/draft-06/schema",
	"http://json-schema.org/draft-07/schema",
	"https://json-schema.org/draft/2019-09/schema",
	"https://json-schema.org/draft/2020-12/schema",
}

// externalReference returns the first reference of a JSON document to another document.
func externalReference(node any) string {
	var children []any

	switch node := node.(type) {
	case map[string]any:
		for key, child := range node {
			if ref, ok := child.(string); ok && isExternal(key, ref) {
				return ref
			}

			children = append(children, child)
		}
	case []any:
		children = node
	}

	for _, child := range children {
		if ref := externalReference(child); ref != "" {
			return ref
		}
	}

	return ""
}

// isExternal reports whether a keyword with this value refers to another document.
func isExternal(keyword, value string) bool {
	if keyword == "$schema" {
		draft := strings.TrimSuffix(value, "#")
		draft = strings.Replace(draft, "https://json-schema.org/draft-0", "http://json-schema.org/draft-0", 1)

		return !slices.Contains(drafts, draft)
	}

	return slices.Contains(referring, keyword) && !strings.HasPrefix(value, "#")
}
