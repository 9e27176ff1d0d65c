package bundle

import "regexp"

// loneExpression matches lines with nothing but an expression. Its value may be any number of lines, or none.
var loneExpression = regexp.MustCompile(`(?m)^[ \t]*\$\{[^}\n]*\}[ \t]*$`)

// HasLoneExpression reports whether an expression is alone on a line of a text.
func HasLoneExpression(text string) bool { return loneExpression.MatchString(text) }

// ParseTemplate parses a cluster template. If it is not valid, expressions that are alone on their line are left out:
// it may be valid with their values. The error is an *InvalidError.
func ParseTemplate(data []byte) (*Components, error) {
	parsed, err := ParseComponents(data)
	if err == nil {
		return parsed, nil
	}

	return ParseComponents(loneExpression.ReplaceAll(data, nil))
}
