package providers

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// someViews returns a healthy provider, an unhealthy one and one that is not installed.
func someViews() []view.Provider {
	condition := func(kind string, is metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message}
	}

	return []view.Provider{
		{
			APIVersion: v1alpha2.GroupVersion.String(),
			Kind:       "CoreProvider", Namespace: "capi-system", Name: "cluster-api", Label: "cluster-api", Ready: "True",
			Verdict: view.Verdict{
				State: view.Ready, Text: "v1.13.5 is healthy, changes are pending", Cause: "Secret variables has changed",
			},
			Created: metav1.NewTime(now.Add(-48 * time.Hour)),
			Wanted:  "v1.13.5", Version: "v1.13.5", Contract: "v1beta2",
			Chart:   &v1alpha2.ChartStatus{Name: "cluster-api", Version: "1.13.5", Digest: "sha256:0123456789abcdef"},
			Release: &v1alpha2.ReleaseStatus{Name: "cluster-api", Namespace: "capi-system", Revision: 2, Status: "deployed"},
			Objects: []view.Object{
				{Kind: "ClusterRole", Name: "capi-manager-role", Status: status.CurrentStatus},
				{
					Kind:      "Deployment",
					Namespace: "capi-system",
					Name:      "capi-controller-manager",
					Status:    status.CurrentStatus,
					Message:   "Deployment is available. Replicas: 1",
				},
			},
			AutomaticUpgrade: &v1alpha2.AutomaticUpgradeStatus{
				Pending: &v1alpha2.PendingUpgrade{
					Version: "v1.13.7", Message: "waits for the window, which opens at 2026-11-28 01:00 UTC",
				},
				Last: &v1alpha2.AutomaticUpgrade{
					Version: "v1.13.6", Revision: 3, Time: metav1.Unix(1795366800, 0),
					Result: v1alpha2.UpgradeFailed, Message: "not healthy within 5m",
				},
			},
			Conditions: []metav1.Condition{
				condition("Ready", "True", "Healthy", "v1.13.5 is healthy"),
				condition("ChangesPending", "True", "InputsChanged", "Secret variables has changed"),
			},
		},
		{
			Kind:      "InfrastructureProvider",
			Namespace: "capa-system",
			Name:      "aws",
			Label:     "infrastructure-aws",
			Ready:     "False",
			Verdict: view.Verdict{
				State: view.Failing, Text: "v2.10.3 runs; v2.11.1 failed twice, given up",
				Cause: "the API server rejected Service capa-system/capa-webhook-service",
			},
			Wanted:     "~2.11",
			Version:    "v2.10.3",
			Contract:   "v1beta1",
			DependsOn:  []string{"addon-cert-manager", "ipam-in-cluster"},
			Suspended:  true,
			Paused:     true,
			RollbackTo: new(3),
			Release: &v1alpha2.ReleaseStatus{
				Name:      "infrastructure-aws",
				Namespace: "capa-system",
				Revision:  4,
				Status:    "failed",
			},
			Objects: []view.Object{
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
			Verdict: view.Verdict{State: view.Waiting, Text: "waiting for the operator"},
			Remote:  true, Cluster: "caaph-system/workload-kubeconfig/value",
		},
	}
}

func TestPrintStatus(t *testing.T) {
	status := func(printer cli.Printer) string {
		return clitest.Printed(t, printer, func(p *cli.Printer) error { return printStatus(p, someViews()) })
	}
	clitest.Golden(t, "status-tree.txt", status(cli.Printer{Format: cli.FormatTree}))
	clitest.Golden(t, "status-narrow-colored.txt", status(cli.Printer{Format: cli.FormatTree, Width: 60, Color: true}))
	clitest.Golden(t, "status.json", status(cli.Printer{Format: cli.FormatJSON}))
	clitest.Golden(t, "status.yaml", status(cli.Printer{Format: cli.FormatYAML}))
}

// TestPrintDetails prints a provider with everything that is known about a single one.
func TestPrintDetails(t *testing.T) {
	v := someViews()[0]
	v.Upgrades = []v1alpha2.AvailableUpgrade{{Version: "v1.13.6", Contract: "v1beta2"}}
	v.Chart.Source = "https://github.com/kubernetes-sigs/cluster-api"
	v.Created = metav1.NewTime(time.Now().Add(-48 * time.Hour))
	v.Details = &view.Details{
		Images: []string{"registry.k8s.io/cluster-api/cluster-api-controller:v1.13.5"},
		Trust:  []string{"Cosign signature, trusted by Secret keys"},
		Variables: []view.Variable{
			{Name: "CLUSTER_TOPOLOGY", From: "spec.variables"},
			{Name: "PASSWORD", From: "Secret capi-system/variables"},
			{Name: "REGION"},
		},
		CRDs: []view.CRD{
			{
				Name: "clusters.cluster.x-k8s.io", Served: []string{"v1beta1", "v1beta2"},
				Storage: "v1beta2", Stored: []string{"v1beta1", "v1beta2"},
			},
			{
				Name: "machines.cluster.x-k8s.io", Served: []string{"v1beta2"},
				Storage: "v1beta2", Stored: []string{"v1beta2"},
			},
		},
		Events: []view.Event{
			{
				Time: metav1.NewTime(time.Now().Add(-time.Hour)),
				Type: "Normal", Reason: "Upgraded", Message: "revision 2 is healthy", Count: 2,
			},
			{
				Time: metav1.NewTime(time.Now().Add(-2 * time.Hour)), Type: "Normal", Reason: "Healthy",
				Message: "v1.13.5 is healthy", Count: 1,
			},
			{
				Time: metav1.NewTime(time.Now().Add(-3 * time.Hour)),
				Type: "Normal", Reason: "Upgraded", Message: "revision 1 is healthy", Count: 1,
			},
		},
		Unknown: []string{"variables: forbidden"},
	}

	clitest.Golden(t, "status-details.txt", clitest.Printed(t, cli.Printer{}, func(p *cli.Printer) error {
		p.Format = cli.FormatTree
		return printStatus(p, []view.Provider{v})
	}))
}

// TestModes: what the verdict says about automatic upgrades is not said again.
func TestModes(t *testing.T) {
	g := NewWithT(t)

	v := view.Provider{Paused: true, AutomaticUpgrade: &v1alpha2.AutomaticUpgradeStatus{
		Pending: &v1alpha2.PendingUpgrade{Version: "v1.2.1", Message: "a variable is missing", Blocked: true},
	}}
	paused, blocked := "paused: the provider's Deployments are scaled to zero",
		"automatic upgrade to v1.2.1 is blocked: a variable is missing"

	g.Expect(modes(v)).To(Equal([]string{paused, blocked}))

	v.Verdict.Text = "v1.2.0 is healthy; the " + blocked
	g.Expect(modes(v)).To(Equal([]string{paused}))
}

// TestStatusOfReadyProvider is about a terminal on which its message does not fit beside the versions.
func TestStatusOfReadyProvider(t *testing.T) {
	verdict := view.Verdict{State: view.Ready, Text: "v2.10.3 is healthy, the newest version in its range"}
	views := []view.Provider{{Label: "infrastructure-aws", Version: "v2.10.3", Wanted: "~2.10", Verdict: verdict}}

	out := clitest.Printed(t, cli.Printer{Width: 60}, func(p *cli.Printer) error {
		return p.Table(statusTable(views, p, now))
	})
	NewWithT(t).Expect(out).To(HaveSuffix("infrastructure-aws   v2.10.3   ~2.10\n  " + verdict.Text + "\n"))
}

// TestStatusTable: no message is cut.
func TestStatusTable(t *testing.T) {
	g := NewWithT(t)

	for width, file := range map[int]string{0: "status.txt", 80: "status-80.txt", 120: "status-120.txt"} {
		out := clitest.Printed(t, cli.Printer{Width: width}, func(p *cli.Printer) error {
			return p.Table(statusTable(someViews(), p, now))
		})
		clitest.Golden(t, file, out)

		for line := range strings.Lines(out) {
			g.Expect(len([]rune(line)) - 1).To(Or(BeNumerically("<=", width), BeNumerically(">", 2*width)))
		}
	}

	for format, file := range map[string]string{cli.FormatWide: "status-wide.txt", cli.FormatName: "status-name.txt"} {
		clitest.Golden(t, file, clitest.Printed(t, cli.Printer{Format: format, Width: 120}, func(p *cli.Printer) error {
			if format == cli.FormatWide {
				return p.Table(statusTable(someViews(), p, now))
			}

			return printStatus(p, someViews())
		}))
	}
}

func TestStatusWidth(t *testing.T) {
	for _, width := range []int{40, 80, 120} {
		out := clitest.Printed(t, cli.Printer{Width: width, Format: cli.FormatTree}, func(p *cli.Printer) error {
			return printStatus(p, someViews())
		})
		for line := range strings.Lines(out) {
			if words := strings.Fields(line); len(words) > 3 {
				NewWithT(t).Expect(len([]rune(strings.TrimSpace(line)))).To(BeNumerically("<=", width), line)
			}
		}
	}
}
