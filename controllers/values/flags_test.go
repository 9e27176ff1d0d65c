package values_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/values"
)

// TestPublishedFlags covers the fields whose flags only some managers have: which of the published flags
// they set, and that nothing else is set.
func TestPublishedFlags(t *testing.T) {
	for name, c := range map[string]struct {
		// published are the arguments in the components.
		published []string
		spec      string
		args      []string
		// ignored is the beginning of the warning, if there is one.
		ignored string
	}{
		"the concurrency of all controllers": {
			published: []string{"--max-concurrent-reconciles=5", "--aws-concurrency=1"},
			spec:      `{manager: {maxConcurrentReconciles: 20}}`,
			args:      []string{"--max-concurrent-reconciles=20", "--aws-concurrency=1"},
		},
		"the concurrency of each controller": {
			published: []string{"--cluster-concurrency=1", "--machine-concurrency=${N:=5}", "--v=0"},
			spec:      `{manager: {maxConcurrentReconciles: 20}}`,
			args:      []string{"--cluster-concurrency=20", "--machine-concurrency=20", "--v=0"},
		},
		"the concurrency of one controller takes precedence": {
			published: []string{"--a-concurrency=1", "--b-concurrency=1", "--c-concurrency=1"},
			spec: `{manager: {maxConcurrentReconciles: 20, controller: {groupKindConcurrency: {A: 2}}},
				deployment: {containers: [{name: manager, args: {--b-concurrency: "3"}}]}}`,
			args: []string{"--a-concurrency=2", "--b-concurrency=3", "--c-concurrency=20"},
		},
		"no flag for the concurrency": {
			published: []string{"--v=0"},
			spec:      `{manager: {maxConcurrentReconciles: 20}}`,
			args:      []string{"--v=0"},
			ignored: "spec.manager.maxConcurrentReconciles is ignored: " +
				"the manager is not published with --max-concurrent-reconciles, and",
		},
		"a flag in additionalArgs": {
			spec: `{manager: {metrics: {bindAddress: ":2"}, additionalArgs: {--metrics-addr: ":1"}}}`,
			args: []string{"--metrics-addr=:2"},
		},
		"metrics of Kubebuilder's managers": {
			published: []string{"--metrics-bind-address=:1", "--health-probe-bind-address=:1"},
			spec:      `{manager: {metrics: {bindAddress: ":2"}, health: {healthProbeBindAddress: ":3"}}}`,
			args:      []string{"--metrics-bind-address=:2", "--health-probe-bind-address=:3"},
		},
		"metrics of older managers": {
			published: []string{"--metrics-bind-addr", ":1", "--health-addr=:1"},
			spec:      `{manager: {metrics: {bindAddress: ":2"}, health: {healthProbeBindAddress: ":3"}}}`,
			args:      []string{"--metrics-bind-addr=:2", "--health-addr=:3"},
		},
		"metrics of newer managers": {
			published: []string{"--diagnostics-address=:1", "--insecure-diagnostics=${INSECURE:=false}"},
			spec:      `{manager: {metrics: {bindAddress: ":2", insecureDiagnostics: true}}}`,
			args:      []string{"--diagnostics-address=:2", "--insecure-diagnostics=true"},
		},
		"diagnostics of newer managers": {
			published: []string{"--diagnostics-address=${ADDRESS:=:1}"},
			spec:      `{manager: {metrics: {diagnosticsAddress: ":2"}}}`,
			args:      []string{"--diagnostics-address=:2"},
		},
		"diagnostics of older managers": {
			published: []string{"--metrics-bind-addr=:1"},
			spec:      `{manager: {metrics: {diagnosticsAddress: ":2"}}}`,
			args:      []string{"--metrics-bind-addr=:1"},
			ignored:   "spec.manager.metrics.diagnosticsAddress is ignored: ",
		},
		"no flag for the probes": {
			spec:    `{manager: {health: {healthProbeBindAddress: ":3"}}}`,
			ignored: "spec.manager.health.healthProbeBindAddress is ignored: ",
		},
		"the host of webhooks": {
			published: []string{"--webhook-host=a"},
			spec:      `{manager: {webhook: {host: b}}}`,
			args:      []string{"--webhook-host=b"},
		},
		"no flag for the host of webhooks": {
			spec:    `{manager: {webhook: {host: b}}}`,
			ignored: "spec.manager.webhook.host is ignored: ",
		},
		"the name of the lock": {
			published: []string{"--leader-election-id=a"},
			spec:      `{manager: {leaderElection: {resourceName: foo, resourceNamespace: here}}}`,
			args:      []string{"--leader-election-id=here/foo"},
		},
		"no flag for the name of the lock": {
			spec:    `{manager: {leaderElection: {resourceName: foo}}}`,
			ignored: "spec.manager.leaderElection.resourceName is ignored: ",
		},
		"leader election of older managers": {
			published: []string{"--enable-leader-election"},
			spec:      `{manager: {leaderElection: {leaderElect: false}}}`,
			args:      []string{"--enable-leader-election=false"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			published, err := json.Marshal(c.published)
			g.Expect(err).NotTo(HaveOccurred())

			components := strings.Replace(deploymentComponents("lone", true, "manager"),
				"{name: manager,", fmt.Sprintf("{name: manager, args: %s,", published), 1)

			got, warnings, err := customized(t, buildChart(t, components), values.Input{Spec: specOf(t, c.spec)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(containerNamed(t, got["lone"], "manager").Args).To(HaveExactElements(c.args))

			if c.ignored == "" {
				g.Expect(warnings).To(BeEmpty())
				return
			}

			g.Expect(warnings).To(ConsistOf(And(HavePrefix(c.ignored), HaveSuffix("set that with additionalArgs"))))
		})
	}
}
