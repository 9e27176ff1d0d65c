package values_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/values"
)

// TestHighAvailability: a Deployment gets it unless it cannot run two pods, and a warning names what takes precedence.
func TestHighAvailability(t *testing.T) {
	const (
		name    = "tiny-controller-manager"
		spec    = "spec.deployment.highAvailability"
		flag    = "--manager-high-availability"
		ignored = " is ignored for Deployment " + name + ": "
		over    = "Deployment " + name + ": "
	)

	hostPort := strings.Replace(managerComponents, "        env:",
		"        ports: [{containerPort: 1, hostPort: 2}]\n        env:", 1)
	electionless := strings.Replace(managerComponents, "        - --leader-elect\n", "", 1)

	for title, c := range map[string]struct {
		components string
		spec       string
		flag       bool
		replicas   int
		warnings   []string
	}{
		"nothing asks for it": {"", `{}`, false, 1, nil},
		"the resource":        {"", `{deployment: {highAvailability: true}}`, false, 2, nil},
		"the flag":            {"", `{}`, true, 2, nil},
		"the flag and another setting": {
			"", `{deployment: {nodeSelector: {a: b}}, manager: {verbosity: 3}}`, true, 2, nil,
		},
		"the resource contradicts the flag": {"", `{deployment: {highAvailability: false}}`, true, 1, nil},
		"more replicas":                     {"", `{deployment: {highAvailability: true, replicas: 3}}`, false, 3, nil},
		"one replica": {
			"", `{deployment: {replicas: 1}}`, true, 1,
			[]string{over + "the resource sets one replica, which takes precedence over " + flag},
		},
		"no replica": {"", `{deployment: {replicas: 0}}`, true, 0, nil},
		"topologySpreadConstraints": {
			"", `{deployment: {highAvailability: true, topologySpreadConstraints: []}}`, false, 2,
			[]string{over + "the resource sets topologySpreadConstraints, which takes precedence over " + spec},
		},
		"a strategy of the components": {
			strings.Replace(managerComponents, "  replicas: 1", "  strategy: {type: Recreate}", 1), `{}`, true, 2,
			[]string{over + "the components set the strategy Recreate, which takes precedence over " + flag},
		},
		"a host port": {
			hostPort, `{}`, true, 1, []string{flag + ignored + "its container manager uses port 2 of its node"},
		},
		"no leader election": {
			electionless, `{}`, true, 1,
			[]string{flag + ignored + "it has no leader election, so two managers would change the same objects"},
		},
		"leader election by the resource": {
			electionless, `{manager: {leaderElection: {leaderElect: true}}}`, true, 2, nil,
		},
		"leader election by a container": {
			electionless, `{deployment: {containers: [{name: manager, args: {--leader-elect: "true"}}]}}`, true, 2, nil,
		},
		"leader election is turned off": {
			"", `{deployment: {highAvailability: true}, manager: {leaderElection: {leaderElect: false}}}`, false, 1,
			[]string{spec + ignored + "it has no leader election, so two managers would change the same objects"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			g := NewWithT(t)

			if c.components == "" {
				c.components = managerComponents
			}

			rendered, warnings, err := customized(t, buildChart(t, c.components),
				values.Input{Spec: specOf(t, c.spec), HighAvailability: c.flag})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(warnings).To(Equal(c.warnings))
			g.Expect(*rendered[name].Spec.Replicas).To(BeEquivalentTo(c.replicas))
		})
	}
}

// TestHighAvailabilityOfAdditionalDeployments: the flag is the default of each Deployment.
func TestHighAvailabilityOfAdditionalDeployments(t *testing.T) {
	g := NewWithT(t)

	second := strings.NewReplacer("tiny-controller-manager", "second", "app: tiny", "app: second").Replace(
		managerComponents)
	built := buildChart(t, managerComponents+"---"+second)

	rendered, warnings, err := customized(t, built, values.Input{HighAvailability: true, Spec: specOf(t, `
additionalDeployments: {second: {deployment: {highAvailability: false}}}`)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(BeEmpty())
	g.Expect(*rendered["tiny-controller-manager"].Spec.Replicas).To(BeEquivalentTo(2))
	g.Expect(*rendered["second"].Spec.Replicas).To(BeEquivalentTo(1))

	rendered, warnings, err = customized(t, built, values.Input{Spec: specOf(t, `
additionalDeployments: {second: {deployment: {highAvailability: true}}}`)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(BeEmpty())
	g.Expect(*rendered["tiny-controller-manager"].Spec.Replicas).To(BeEquivalentTo(1))
	g.Expect(*rendered["second"].Spec.Replicas).To(BeEquivalentTo(2))
}
