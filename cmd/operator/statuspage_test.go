package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

func TestStatusPageIsOffByDefault(t *testing.T) {
	g := NewWithT(t)
	s := &statusPage{}
	set := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	s.bindFlags(set)

	g.Expect(set.Parse(nil)).To(Succeed())
	g.Expect(s.addTo(nil, nil)).To(Succeed(), "it adds nothing to the manager")
}

func TestStatusPageRefusesMissingCertificate(t *testing.T) {
	g := NewWithT(t)
	s := &statusPage{address: ":9443", certificate: t.TempDir()}

	g.Expect(s.addTo(nil, nil)).
		To(MatchError(ContainSubstring("--ui-cert-path needs a folder with tls.crt and tls.key")))
}
