package release

import (
	"io"
	"log"
	"strings"

	"github.com/go-logr/logr"

	"github.com/capstan-project/capstan/controllers/object"
)

// helmVerbosity is the verbosity of the log lines of Helm's library.
const helmVerbosity = 1

// RedirectStandardLog redirects the standard library's logger, which Helm's rendering uses. It
// changes a global: call it once, from main.
func RedirectStandardLog(to logr.Logger) {
	log.SetFlags(0)
	log.SetOutput(standardLog{to})
}

type standardLog struct{ to logr.Logger }

var _ io.Writer = standardLog{}

// Write logs a line up to the first parenthesis, after which Helm shows values.
func (l standardLog) Write(line []byte) (int, error) {
	text, _, _ := strings.Cut(string(line), " (")
	l.to.V(helmVerbosity).Info(object.OneLine(text, maxMessage), "source", "log")

	return len(line), nil
}
