package provider

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

// apiServer is a real API server with the CRDs, started by the first test that needs it. Resources of each test have
// names of their own.
var apiServer = bedtest.Shared{Options: func() bed.Options { return bedtest.APIServer(harness.OwnCRDs()...) }}

// A busy machine may need more than the second that Gomega waits by default.
func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(time.Minute)
	apiServer.Main(m)
}

// connect returns a client for the API server.
func connect(t *testing.T) client.Client {
	t.Helper()

	live, err := harness.NewClient(apiServer.Get(t).Config())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return live
}
