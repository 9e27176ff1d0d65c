// Package suite runs suites of specs that ask an API server until it has the answer that they expect.
package suite

import (
	"os"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// interval is the time between two questions, which cost processor time here and in the API server.
const interval = 50 * time.Millisecond

// Suite is a suite of specs.
type Suite struct {
	// Name is the name of the suite in reports.
	Name string
	// Patience is how long Eventually asks, also on a busy machine; zero means two minutes.
	Patience time.Duration
	// Target is the make target that runs the suite, and Variable what it sets, if `make test` skips the suite.
	Target, Variable string
}

// Run runs the specs of the package, or skips them.
func (s Suite) Run(t *testing.T) {
	if s.Variable != "" && os.Getenv(s.Variable) == "" {
		t.Skipf("%s is not set: make %s runs the suite", s.Variable, s.Target)
	}

	if s.Patience == 0 {
		s.Patience = 2 * time.Minute
	}

	gomega.RegisterFailHandler(ginkgo.Fail)
	gomega.SetDefaultEventuallyTimeout(s.Patience)
	gomega.SetDefaultEventuallyPollingInterval(interval)
	ginkgo.RunSpecs(t, s.Name)
}
