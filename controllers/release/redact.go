package release

import (
	"regexp"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/controllers/object"
)

// maxMessage limits a message of Helm's in bytes.
const maxMessage = 1024

// nameList matches a list of names in quotes.
var nameList = regexp.MustCompile(`'[^']*'(, '[^']*')+`)

// schemaErrors puts Helm's errors about values that do not match a chart's schema on one line, in a
// fixed order. Helm's order is that of maps; a condition whose message changed every time would
// cause endless updates. It returns any other message unchanged.
func schemaErrors(message string) string {
	var errs []string

	for line := range strings.Lines(message) {
		item, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			continue
		}

		errs = append(errs, nameList.ReplaceAllStringFunc(item, func(names string) string {
			return strings.Join(slices.Sorted(slices.Values(strings.Split(names, ", "))), ", ")
		}))
	}

	if len(errs) == 0 {
		return message
	}

	slices.Sort(errs)

	return "the values do not match its schema: " + strings.Join(errs, "; ")
}

// excerpt matches what YAML parsers quote of their input.
var excerpt = regexp.MustCompile("`[^`]*`")

// redact removes values from a message of Helm's, because any of them may be a credential.
func redact(message string, values any) string {
	message = excerpt.ReplaceAllString(message, "`…`")

	hidden := secretTexts(values, nil)

	// Longest first: a value may be part of another one.
	slices.SortFunc(hidden, func(a, b string) int { return len(b) - len(a) })

	for _, text := range hidden {
		message = strings.ReplaceAll(message, text, "…")
	}

	return object.OneLine(message, maxMessage)
}

// minSecret is the length from which on a value is removed from messages. Shorter ones would be
// removed from the middle of words.
const minSecret = 4

// secretTexts appends the strings in the values that may be secrets.
func secretTexts(values any, found []string) []string {
	switch values := values.(type) {
	case map[string]any:
		for _, child := range values {
			found = secretTexts(child, found)
		}
	case []any:
		for _, child := range values {
			found = secretTexts(child, found)
		}
	case string:
		if len(values) >= minSecret {
			found = append(found, values)
		}
	}

	return found
}
