package release

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
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

var (
	// failure is what Helm puts before a message of the chart's own.
	failure = regexp.MustCompile(`^execution error at \([^)]*\): `)
	// templateFailure is the beginning of other messages of templates, with the file; the last one is Helm 4's.
	templateFailure = regexp.MustCompile(
		`^(?:template: ([^\s:]+):|execution error in \(([^)]*)\):|(\S+?):\d+:\d+\s+executing ")`)
	// plainFailure matches those that quote no value, unlike most: where the template fails, from its own line to that in
	// the innermost template that it includes, and why.
	plainFailure = regexp.MustCompile(
		`^(?:(?:error calling include: )?template: \S+: executing "[^"]*" at <[^>]*>: )+` +
			`(?:nil pointer evaluating|can't evaluate field|wrong type for value;) [^:"]*$`)
	// parserText matches what parsers of YAML and JSON report, which may quote any part of a value.
	parserText = regexp.MustCompile(`(?s)(?:error (?:converting YAML|unmarshaling JSON)|(?:^|[\s:(])(?:yaml|json): ).*$`)
)

// redact removes values from a message of Helm's, because any of them may be a credential: what parsers and templates
// say about the text that they were given, and values as a whole. Charts that Capstan builds show no parts of values.
func redact(message string, values any) string {
	message = failure.ReplaceAllString(message, "")

	if file := templateFailure.FindStringSubmatch(message); file != nil && !plainFailure.MatchString(message) {
		message = fmt.Sprintf("template %s fails with these values", strings.Join(file[1:], ""))
	}

	message = parserText.ReplaceAllString(message, " not valid YAML with these values")

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

// secretTexts appends the strings in the values that may be secrets, also as messages quote them.
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
		for _, text := range []string{values, strings.TrimSpace(values)} {
			quoted := strconv.Quote(text)
			inner := quoted[1 : len(quoted)-1]
			single := strings.ReplaceAll(strings.ReplaceAll(inner, `\"`, `"`), "'", `\'`)

			for _, shown := range []string{text, inner, single} {
				if len(shown) >= minSecret && text != "true" && text != "false" && text != "null" {
					found = append(found, shown)
				}
			}
		}
	}

	return found
}
