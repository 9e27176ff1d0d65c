package providers

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/controllers/fetch"
)

func TestPrintPlans(t *testing.T) {
	core := &installedProvider{
		Label: "cluster-api", Version: "v1.9.10", Contract: "v1beta1",
		Available: versions("v1.13.5", "v1beta2", "v1.9.11", "v1beta1", "v1.9.10", "v1beta1"),
	}
	current := &installedProvider{Label: "cluster-api", Version: "v1.13.5", Contract: "v1beta2"}
	kubeadm := &installedProvider{
		Label: "bootstrap-kubeadm", Version: "v1.9.10", Contract: "v1beta1",
		Available: versions("v1.13.5", "v1beta2", "v1.9.11", "v1beta1"),
	}
	aws := &installedProvider{Label: "infrastructure-aws", Version: "v2.11.1", Contract: "v1beta1"}
	azure := &installedProvider{
		Label: "infrastructure-azure", Version: "v1.25.1", Contract: "v1beta2",
		Available: versions("v1.28.1", "v1beta2", "v1.27.3", "v1beta2", "v1.26.4", "v1beta2", "v1.25.2", "v1beta2"),
	}
	ancient := &installedProvider{Label: "infrastructure-ancient", Version: "v0.1.0", Contract: "v1alpha4"}

	unread := &installedProvider{
		Label: "cluster-api", Version: "v1.12.11", Contract: "v1beta1", unread: errors.New("no such host"),
	}

	printed := func(t *testing.T, printer cli.Printer, providers ...*installedProvider) string {
		t.Helper()

		return clitest.Printed(t, printer, func(p *cli.Printer) error {
			return printPlans(&cli.Options{}, p, planUpgrades(providers), unknown(providers), "")
		})
	}

	for file, providers := range map[string][]*installedProvider{
		"plan.txt":         {core, kubeadm, aws},
		"plan-blocked.txt": {core, ancient},
		"plan-current.txt": {current, aws},
		"plan-no-core.txt": {aws},
		"plan-none.txt":    nil,
		"plan-skips.txt":   {current, azure},
		"plan-unknown.txt": {unread, aws},
	} {
		t.Run(file, func(t *testing.T) { clitest.Golden(t, file, printed(t, cli.Printer{}, providers...)) })
	}

	clitest.Golden(t, "plan-unknown.json", printed(t, cli.Printer{Format: cli.FormatJSON}, unread))
	clitest.Golden(t, "plan-colored.txt", printed(t, cli.Printer{Color: true}, core, kubeadm, aws))
	clitest.Golden(t, "plan.json", printed(t, cli.Printer{Format: cli.FormatJSON}, core, kubeadm, aws))
}

// TestWarnOfUnread: a server that cannot be reached is one warning, however many providers it has.
func TestWarnOfUnread(t *testing.T) {
	g := NewWithT(t)
	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	unreachable := func(place string) error {
		return &transport.Error{Place: place, Problem: "lookup github.com: no such host"}
	}
	installed := []*installedProvider{
		{Label: "cluster-api", unread: unreachable("https://github.com/a")},
		{Label: "infrastructure-aws"},
		{Label: "infrastructure-docker", unread: unreachable("https://github.com/b")},
		{Label: "addon-helm", unread: errors.New("the folder does not exist")},
		{Label: "infrastructure-a", unread: &fetch.UnknownProviderError{Name: "a"}},
		{Label: "infrastructure-b", unread: &fetch.UnknownProviderError{Name: "b"}},
	}

	warnOfUnread(&cli.Options{IOStreams: streams}, installed)
	g.Expect(unknown(installed)).To(Equal([]string{
		"cluster-api", "infrastructure-docker", "addon-helm", "infrastructure-a", "infrastructure-b",
	}))
	g.Expect(errOut.String()).To(Equal(
		"Warning: the available versions of cluster-api, infrastructure-docker are unknown: lookup github.com: no such " +
			"host; or give --config a file with other sources\n" +
			"Warning: the available versions of addon-helm are unknown: the folder does not exist; or give --config a file " +
			"with other sources\n" +
			"Warning: the available versions of infrastructure-a, infrastructure-b are unknown: neither clusterctl's list of " +
			"providers nor the operator's configuration has a source; set spec.fetchConfig to where the components are; or " +
			"give --config a file with other sources\n"))
}
