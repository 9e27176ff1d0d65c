package v1alpha2

import (
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestImports: like the types of Kubernetes, these need no client, so that programs can use them at little cost.
func TestImports(t *testing.T) {
	g := NewWithT(t)

	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	g.Expect(err).NotTo(HaveOccurred())

	imported := strings.Fields(string(output))
	g.Expect(imported).To(ContainElement(HavePrefix("k8s.io/apimachinery/")))
	g.Expect(imported).NotTo(ContainElement(MatchRegexp(`^(sigs\.k8s\.io/controller-runtime|k8s\.io/client-go)/`)))
	g.Expect(imported).NotTo(ContainElement(
		MatchRegexp(`^github\.com/capstan-project/capstan/(chartgen|cmd|config|contract|controllers)\b`)))
}
