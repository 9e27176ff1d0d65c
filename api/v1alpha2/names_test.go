package v1alpha2

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestReleaseName(t *testing.T) {
	g := NewWithT(t)
	g.Expect(releaseName("infrastructure-aws")).To(Equal("infrastructure-aws"))

	long := "runtime-extension-" + strings.Repeat("x", 45)
	g.Expect(releaseName(long)).To(And(HaveLen(maxReleaseName), HavePrefix("runtime-extension-xxx")))
	g.Expect(releaseName(long)).NotTo(Equal(releaseName(long+"y")), "the part that is cut off still counts")
	g.Expect(releaseName(strings.Repeat("ab-", 20))).NotTo(ContainSubstring("--"))
}

// TestReleaseNamesAreUnique: the operator relies on one action on a release at a time, and the queue on one for each
// resource.
func TestReleaseNamesAreUnique(t *testing.T) {
	g := NewWithT(t)
	found := map[string]string{}

	for _, kind := range ProviderTypes() {
		for _, name := range []string{"x", "cluster-api", "extension-x", "plane-x"} {
			p := kind.New()
			p.SetName(name)

			g.Expect(found).NotTo(HaveKey(ReleaseName(p)), FullName(p))
			found[ReleaseName(p)] = FullName(p)
		}
	}
}

func TestFullName(t *testing.T) {
	p := &InfrastructureProvider{}
	p.Namespace = "capa-system"
	p.Name = "aws"

	NewWithT(t).Expect(FullName(p)).To(Equal("InfrastructureProvider capa-system/aws"))
}
