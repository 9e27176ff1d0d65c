package release

import (
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/go-logr/logr"

	"github.com/capstan-project/capstan/controllers/object"
)

// helmVerbosity is the verbosity of the log lines of Helm's library.
const helmVerbosity = 1

// helmLog returns a log function for Helm's actions, which log names of objects and errors.
func helmLog(log logr.Logger) func(string, ...any) {
	return func(format string, args ...any) {
		if log := log.V(helmVerbosity); log.Enabled() {
			log.Info(object.OneLine(fmt.Sprintf(format, args...), maxMessage), "source", "helm")
		}
	}
}

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
