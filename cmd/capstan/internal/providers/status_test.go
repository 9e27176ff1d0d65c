package providers

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
)

// someViews returns a healthy provider, an unhealthy one and one that is not installed.
func someViews() []providerView {
	condition := func(kind string, is metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message}
	}

	return []providerView{
		{
			Kind: "CoreProvider", Namespace: "capi-system", Name: "cluster-api", Label: "cluster-api", Ready: "Ready",
			Wanted: "v1.13.5", Version: "v1.13.5", Contract: "v1beta2",
			Chart:   &v1alpha2.ChartStatus{Name: "cluster-api", Version: "1.13.5", Digest: "sha256:0123456789abcdef"},
			Release: &v1alpha2.ReleaseStatus{Name: "cluster-api", Namespace: "capi-system", Revision: 2, Status: "deployed"},
			Objects: []objectView{
				{Kind: "ClusterRole", Name: "capi-manager-role", Status: status.CurrentStatus},
				{
					Kind:      "Deployment",
					Namespace: "capi-system",
					Name:      "capi-controller-manager",
					Status:    status.CurrentStatus,
					Message:   "Deployment is available. Replicas: 1",
				},
			},
			Conditions: []metav1.Condition{
				condition("Ready", "True", "Healthy", "cluster-api v1.13.5 is installed and healthy"),
				condition(
					"SourceChanged",
					"True",
					"TagMoved",
					"oci://registry.example.com/cluster-api:1.13.5 refers to other content now",
				),
			},
		},
		{
			Kind:       "InfrastructureProvider",
			Namespace:  "capa-system",
			Name:       "aws",
			Label:      "infrastructure-aws",
			Ready:      "InstallFailed",
			Wanted:     "~2.11",
			Version:    "v2.10.3",
			Contract:   "v1beta1",
			Suspended:  true,
			Paused:     true,
			RollbackTo: new(int64(3)),
			Release: &v1alpha2.ReleaseStatus{
				Name:      "infrastructure-aws",
				Namespace: "capa-system",
				Revision:  4,
				Status:    "failed",
			},
			Objects: []objectView{
				{
					Kind:      "Deployment",
					Namespace: "capa-system",
					Name:      "capa-controller-manager",
					Status:    status.InProgressStatus,
					Message:   "Available: 0/1",
				},
				{
					Kind:      "Service",
					Namespace: "capa-system",
					Name:      "capa-webhook-service",
					Status:    status.NotFoundStatus,
					Message:   "does not exist",
				},
				{Kind: "ServiceAccount", Namespace: "capa-system", Name: "capa-controller-manager", Status: status.CurrentStatus},
			},
			Conditions: []metav1.Condition{
				condition(
					"Stalled",
					"True",
					"InstallFailed",
					"the API server rejected Service capa-system/capa-webhook-service: its port is not a number "+
						"between 1 and 65535, and none of its names is known either",
				),
				condition("PreflightCheckPassed", "True", "PreflightChecksPassed", "All preflight checks passed"),
				condition("ChangesPending", "True", "InputsChanged", "Secret capa-system/aws of spec.configSecret has changed"),
				condition("Ready", "False", "InstallFailed", "the API server rejected Service capa-system/capa-webhook-service"),
			},
		},
		{
			Kind: "AddonProvider", Namespace: "caaph-system", Name: "helm", Label: "addon-helm", Ready: "Unknown",
		},
	}
}

func TestPrintStatus(t *testing.T) {
	status := func(printer cli.Printer, full bool) string {
		return clitest.Printed(t, printer, func(p *cli.Printer) error { return printStatus(p, someViews(), full) })
	}
	clitest.Golden(t, "status.txt", status(cli.Printer{}, false))
	clitest.Golden(t, "status-full.txt", status(cli.Printer{}, true))
	clitest.Golden(t, "status-narrow-colored.txt", status(cli.Printer{Width: 60, Color: true}, false))
	clitest.Golden(t, "status.json", status(cli.Printer{Format: cli.FormatJSON}, false))
	clitest.Golden(t, "status.yaml", status(cli.Printer{Format: cli.FormatYAML}, false))
}

func TestStatusWidth(t *testing.T) {
	for _, width := range []int{40, 80, 120} {
		out := clitest.Printed(t, cli.Printer{Width: width}, func(p *cli.Printer) error {
			return printStatus(p, someViews(), true)
		})
		for line := range strings.Lines(out) {
			if words := strings.Fields(line); len(words) > 3 {
				NewWithT(t).Expect(len([]rune(strings.TrimSpace(line)))).To(BeNumerically("<=", width), line)
			}
		}
	}
}
