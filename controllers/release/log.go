package release

import (
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/go-logr/logr"
)

// helmLevel is the verbosity of what Helm's library has to say.
const helmLevel = 1

// helmLog passes on what Helm logs while it acts: names of objects and errors.
func helmLog(to logr.Logger) func(string, ...any) {
	return func(format string, args ...any) {
		if to := to.V(helmLevel); to.Enabled() {
			to.Info(shorten(fmt.Sprintf(format, args...)), "source", "helm")
		}
	}
}

// RedirectStandardLog passes on what goes to the standard library's logger, which Helm's rendering
// uses. It is the program's to decide, as it changes a global: call it once, from main.
func RedirectStandardLog(to logr.Logger) {
	log.SetFlags(0)
	log.SetOutput(standardLog{to})
}

type standardLog struct{ to logr.Logger }

var _ io.Writer = standardLog{}

// Write logs a line without what is in parentheses, where Helm shows values.
func (l standardLog) Write(line []byte) (int, error) {
	text, _, _ := strings.Cut(string(line), " (")
	l.to.V(helmLevel).Info(shorten(text), "source", "log")

	return len(line), nil
}
