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

func TestFullName(t *testing.T) {
	p := &InfrastructureProvider{}
	p.Namespace = "capa-system"
	p.Name = "aws"

	NewWithT(t).Expect(FullName(p)).To(Equal("InfrastructureProvider capa-system/aws"))
}
