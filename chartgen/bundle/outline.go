package bundle

import "strings"

// OutlineComponents is ParseComponents without what is nearly all of a components file and nothing
// that makes a chart looks at: the schemas of CRDs and the webhooks of webhook configurations. They
// stay in each document's Text and are left out of its Object, neither read nor checked.
func OutlineComponents(data []byte) (*Components, error) {
	return parseComponents(data, outline)
}

// outline leaves the bulk out of an object in block style. Any other text is returned as it is.
func outline(text string) string {
	switch head := "\n" + text; {
	case strings.Contains(head, "\nkind: CustomResourceDefinition\n"):
		return withoutSchemas(text)
	case strings.Contains(head, "WebhookConfiguration\n"):
		before, webhooks, _ := strings.Cut(text, "\nwebhooks:\n")
		return before + "\n" + webhooks[leading(webhooks, func(line string) bool { return strings.ContainsRune(" -\n", rune(line[0])) }):]
	}

	return text
}

// withoutSchemas leaves out what stands below each "schema:" of a version.
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
			schema = schema[leading(schema, func(line string) bool {
				return line == "\n" || strings.HasPrefix(line, indent+"  ")
			}):]
		}

		text = schema
	}
}

// leading is the length of the lines at the beginning of which all belong.
func leading(text string, belongs func(line string) bool) int {
	end := 0

	for line := range strings.Lines(text) {
		if !belongs(line) {
			break
		}

		end += len(line)
	}

	return end
}
