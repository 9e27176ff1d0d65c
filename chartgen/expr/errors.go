package expr

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnsupported marks expressions that clusterctl accepts but a chart cannot contain.
var ErrUnsupported = errors.New("not supported in a chart")

// SyntaxError reports an expression that cannot be parsed or compiled. Its position is that of the
// outermost "${" in the parsed text.
type SyntaxError struct {
	Line, Column int    // starting at 1; columns count characters
	Expression   string // as written, shortened to one line
	Err          error  // the reason, and what to write instead
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: expression %s: %v", e.Line, e.Column, e.Expression, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

func (e *expression) syntaxError(err error) *SyntaxError {
	return &SyntaxError{Line: e.line, Column: e.column, Expression: shorten(e.written), Err: err}
}

// shorten returns the beginning of an expression, on one line, for messages.
func shorten(source string) string {
	const maxLength = 60

	if end := strings.IndexAny(source, "\r\n"); end >= 0 {
		source = source[:end]
	}

	if len(source) <= maxLength {
		return source
	}

	return strings.ToValidUTF8(source[:maxLength], "") + "…"
}
