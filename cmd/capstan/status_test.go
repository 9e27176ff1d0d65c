package main

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// someViews are a provider that is well, one that is not, and one that is not installed.
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
					"oci://registry.example.com/cluster-api:1.13.5 leads to something else now",
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
					Message:   "is missing",
				},
				{Kind: "ServiceAccount", Namespace: "capa-system", Name: "capa-controller-manager", Status: status.CurrentStatus},
			},
			Conditions: []metav1.Condition{
				condition(
					"Stalled",
					"True",
					"InstallFailed",
					"the API server refused Service capa-system/capa-webhook-service: its port is not a port at all, and nobody knows what it is meant to be",
				),
				condition("PreflightCheckPassed", "True", "PreflightChecksPassed", "All preflight checks passed"),
				condition("Ready", "False", "InstallFailed", "the API server refused Service capa-system/capa-webhook-service"),
			},
		},
		{
			Kind: "AddonProvider", Namespace: "caaph-system", Name: "helm", Label: "addon-helm", Ready: "Unknown",
		},
	}
}

func TestStatusIsDrawn(t *testing.T) {
	draw := func(full bool) func(*screen) {
		return func(s *screen) {
			o := &statusOptions{screen: s}
			NewWithT(t).Expect(o.print(someViews(), full, false)).To(Succeed())
		}
	}
	golden(t, "status.txt", drawn(&screen{}, draw(false)))
	golden(t, "status-full.txt", drawn(&screen{}, draw(true)))
	golden(t, "status-narrow-colored.txt", drawn(&screen{width: 60, colored: true}, draw(false)))
	golden(t, "status.json", drawn(&screen{format: "json"}, draw(false)))
	golden(t, "status.yaml", drawn(&screen{format: "yaml"}, draw(false)))
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	for _, width := range []int{40, 80, 120} {
		out := drawn(&screen{width: width}, func(s *screen) {
			for _, v := range someViews() {
				s.tree(v.tree(true), "", "")
			}
		})
		for line := range strings.Lines(string(out)) {
			if words := strings.Fields(line); len(words) > 3 {
				NewWithT(t).Expect(len([]rune(strings.TrimSpace(line)))).To(BeNumerically("<=", width), line)
			}
		}
	}
}

func TestColours(t *testing.T) {
	for name, c := range map[string]struct {
		flag    string
		colored bool
		err     string
	}{
		"a file has none":  {"auto", false, ""},
		"forced":           {"always", true, ""},
		"forbidden":        {"never", false, ""},
		"anything else is": {"blue", false, `--color is "blue"; give auto, always or never`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := &screen{format: "text", color: c.flag}

			err := s.open(&bytes.Buffer{})
			if c.err != "" {
				g.Expect(err).To(MatchError(c.err))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.colored).To(Equal(c.colored))
			g.Expect(s.width).To(BeZero())
		})
	}

	NewWithT(t).Expect((&screen{format: "xml", color: "auto"}).open(&bytes.Buffer{})).
		To(MatchError(`--output is "xml"; give text, json or yaml`))
}
