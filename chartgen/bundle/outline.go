package bundle

import (
	"strings"

	"github.com/capstan-project/capstan/chartgen/blockyaml"
)

// OutlineObject parses an object, but not the schemas of CRDs and the webhooks of webhook configurations,
// which make up most of a components file.
func OutlineObject(text string) (map[string]any, error) {
	content, err := blockyaml.Unmarshal(outline(text))
	if err != nil {
		// The outline may be wrong, for example in flow style.
		return blockyaml.Unmarshal(text)
	}

	return content, nil
}

// outline removes the bulk from the text of an object in block style. It returns any other text
// unchanged.
func outline(text string) string {
	const crd = "kind: CustomResourceDefinition\n"

	switch {
	case strings.HasPrefix(text, crd), strings.Contains(text, "\n"+crd):
		return withoutSchemas(text)
	case strings.Contains(text, "WebhookConfiguration\n"):
		return withoutWebhooks(text)
	}

	return text
}

// withoutSchemas removes the content of each version's "schema:".
func withoutSchemas(text string) string {
	var kept strings.Builder

	for {
		before, schema, found := strings.Cut(text, " schema:\n")
		kept.WriteString(before)

		if !found {
			return kept.String()
		}

		kept.WriteString(" schema:\n")

		indent := before[strings.LastIndexByte(before, '\n')+1:]
		if strings.Trim(indent, " ") == "" && strings.HasPrefix(strings.TrimLeft(schema, " "), "openAPIV3Schema:") {
			schema = skipLines(schema, func(line string) bool {
				return line == "\n" || strings.HasPrefix(line, indent+"  ")
			})
		}

		text = schema
	}
}

// withoutWebhooks removes the list "webhooks:".
func withoutWebhooks(text string) string {
	before, webhooks, _ := strings.Cut(text, "\nwebhooks:\n")
	after := skipLines(webhooks, func(line string) bool { return strings.ContainsRune(" -\n", rune(line[0])) })

	return before + "\n" + after
}

// skipLines returns text from its first line that skip rejects.
func skipLines(text string, skip func(line string) bool) string {
	end := 0

	for line := range strings.Lines(text) {
		if !skip(line) {
			break
		}

		end += len(line)
	}

	return text[end:]
}
