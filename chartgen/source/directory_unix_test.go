//go:build unix

package source

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/transport"
)

// TestDirectoryDoesNotWait: a pipe, which nothing is written to, is no file of a release.
func TestDirectoryDoesNotWait(t *testing.T) {
	for _, name := range []string{"metadata.yaml", "infrastructure-components.yaml", "cluster-template.yaml"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			folder := releaseFolder(t, "infrastructure-x", "v1.0.0", "metadata.yaml", "infrastructure-components.yaml")
			g.Expect(os.RemoveAll(filepath.Join(folder, name))).To(Succeed())
			g.Expect(syscall.Mkfifo(filepath.Join(folder, name), 0o600)).To(Succeed())

			d, err := NewDirectory(filepath.Dir(folder))
			g.Expect(err).NotTo(HaveOccurred())

			done := make(chan error, 1)

			go func() {
				_, err := d.Fetch(t.Context(), Version{Name: "v1.0.0", ID: "v1.0.0"})
				done <- err
			}()

			g.Eventually(done, "10s").Should(Receive(And(
				MatchError("folder "+folder+": its "+name+" is not a regular file"),
				WithTransform(func(err error) bool { return transport.Is(err, transport.Invalid) }, BeTrue()))))
		})
	}
}
