package setup

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
)

// TestInterruptedInstallation: an interrupt ends the installation of a chart while Helm waits for an API server, which
// does not answer here. Helm records nothing afterwards.
func TestInterruptedInstallation(t *testing.T) {
	g := NewWithT(t)

	clitest.WithoutConfiguration(t)

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = silent.Close() })

	ctx, interrupt := context.WithCancel(t.Context())
	asked := make(chan net.Conn, 1)

	go func() {
		if connection, err := silent.Accept(); err == nil {
			asked <- connection
		}

		interrupt()
	}()

	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer = ptr.To("http://" + silent.Addr().String())

	r := &chartRelease{name: "capstan", namespace: "capstan-system"}
	g.Expect(r.apply(ctx, flags, time.Hour)).To(MatchError(context.Canceled))
	g.Expect((<-asked).Close()).To(Succeed())
}

// TestRecordsAfterInterrupt: a revision for which init does not wait any more is not recorded.
func TestRecordsAfterInterrupt(t *testing.T) {
	g := NewWithT(t)

	memory := driver.NewMemory()
	r := &records{Driver: memory, recorded: new(atomic.Bool)}
	revision := &helmrelease.Release{Name: "capstan", Version: 1, Info: &helmrelease.Info{}}
	g.Expect(r.Create("first", revision)).To(Succeed())
	g.Expect(r.recorded.Load()).To(BeTrue())
	g.Expect(r.Create("second", revision)).To(MatchError(context.Canceled))
	g.Expect(memory.Get("second")).Error().To(HaveOccurred())
}
