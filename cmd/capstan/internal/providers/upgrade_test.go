package providers

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
)

func TestPrintPlans(t *testing.T) {
	core := installedProvider{
		Label: "cluster-api", Version: "v1.9.10", Contract: "v1beta1",
		Available: versions("v1.13.5", "v1beta2", "v1.9.11", "v1beta1", "v1.9.10", "v1beta1"),
	}
	current := installedProvider{Label: "cluster-api", Version: "v1.13.5", Contract: "v1beta2"}
	kubeadm := installedProvider{
		Label: "bootstrap-kubeadm", Version: "v1.9.10", Contract: "v1beta1",
		Available: versions("v1.13.5", "v1beta2", "v1.9.11", "v1beta1"),
	}
	aws := installedProvider{Label: "infrastructure-aws", Version: "v2.11.1", Contract: "v1beta1"}
	ancient := installedProvider{Label: "infrastructure-ancient", Version: "v0.1.0", Contract: "v1alpha4"}

	unknown := installedProvider{
		Label: "cluster-api", Version: "v1.12.11", Contract: "v1beta1", Unknown: "no such host",
	}

	printed := func(t *testing.T, printer cli.Printer, providers ...installedProvider) string {
		t.Helper()

		return clitest.Printed(t, printer, func(p *cli.Printer) error {
			return printPlans(&cli.Options{}, p, planUpgrades(providers))
		})
	}

	for file, providers := range map[string][]installedProvider{
		"plan.txt":         {core, kubeadm, aws},
		"plan-blocked.txt": {core, ancient},
		"plan-current.txt": {current, aws},
		"plan-no-core.txt": {aws},
		"plan-none.txt":    nil,
		"plan-unknown.txt": {unknown, aws},
	} {
		t.Run(file, func(t *testing.T) { clitest.Golden(t, file, printed(t, cli.Printer{}, providers...)) })
	}

	clitest.Golden(t, "plan-unknown.json", printed(t, cli.Printer{Format: cli.FormatJSON}, unknown))
	clitest.Golden(t, "plan-colored.txt", printed(t, cli.Printer{Color: true}, core, kubeadm, aws))
	clitest.Golden(t, "plan.json", printed(t, cli.Printer{Format: cli.FormatJSON}, core, kubeadm, aws))
}

func TestCheckKnown(t *testing.T) {
	g := NewWithT(t)
	known := installedProvider{Label: "infrastructure-aws"}

	g.Expect(checkKnown([]installedProvider{known})).To(Succeed())
	g.Expect(checkKnown([]installedProvider{known, {Label: "cluster-api", Unknown: "no such host"}})).To(
		MatchError(HavePrefix("the available versions of cluster-api are unknown")))
}
