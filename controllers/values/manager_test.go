package values_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// publishedArgs are those of the container manager of managerComponents.
var publishedArgs = []string{"--leader-elect", "--webhook-port=2345", "--feature-gates=Pool=false,Old=true", "--v=0"}

// TestManager has every field of spec.manager and the arguments that it changes or adds; the flags
// are cluster-api-operator's.
func TestManager(t *testing.T) {
	chart := buildChart(t, managerComponents)
	for name, c := range map[string]struct {
		spec string
		// replaced are the published arguments that are others now, by their place; added come
		// after them.
		replaced map[int]string
		added    []string
		warnings types.GomegaMatcher
	}{
		"nothing":                       {spec: `{}`},
		"an empty manager":              {spec: `{manager: {}}`},
		"syncPeriod":                    {spec: `{manager: {syncPeriod: 7h}}`, added: []string{"--sync-period=25200s"}},
		"syncPeriod below a second":     {spec: `{manager: {syncPeriod: 1500ms}}`, added: []string{"--sync-period=1.5s"}},
		"cacheNamespace":                {spec: `{manager: {cacheNamespace: one}}`, added: []string{"--namespace=one"}},
		"profilerAddress":               {spec: `{manager: {profilerAddress: "localhost:1234"}}`, added: []string{"--profiler-address=localhost:1234"}},
		"maxConcurrentReconciles":       {spec: `{manager: {maxConcurrentReconciles: 20}}`, added: []string{"--max-concurrent-reconciles=20"}},
		"verbosity":                     {spec: `{manager: {verbosity: 5}}`, replaced: map[int]string{3: "--v=5"}},
		"verbosity 0":                   {spec: `{manager: {verbosity: 0}}`, replaced: map[int]string{3: "--v=0"}},
		"verbosity 1, which is not set": {spec: `{manager: {verbosity: 1}}`},
		"debug":                         {spec: `{manager: {debug: true}}`, replaced: map[int]string{3: "--v=5"}, added: []string{"--profiler-address=localhost:6060"}},
		"featureGates are merged with the published": {
			spec: `{manager: {featureGates: {Pool: true, New: false}}}`, replaced: map[int]string{2: "--feature-gates=New=false,Old=true,Pool=true"},
		},
		"additionalArgs add and replace": {
			spec: `{manager: {additionalArgs: {--log_dir: /var/log, --webhook-port: "3456", v: "2"}}}`, replaced: map[int]string{1: "--webhook-port=3456", 3: "--v=2"}, added: []string{"--log_dir=/var/log"},
		},
		"groupKindConcurrency": {
			spec:  `{manager: {controller: {groupKindConcurrency: {AWSCluster: 12, machine: 3, AWSMachine.infrastructure.cluster.x-k8s.io: 4}}}}`,
			added: []string{"--awscluster-concurrency=12", "--awsmachine-concurrency=4", "--machine-concurrency=3"},
		},
		"a controller's own concurrency beside the general one": {
			spec:  `{manager: {maxConcurrentReconciles: 20}, deployment: {containers: [{name: manager, args: {--awscluster-concurrency: "12"}}]}}`,
			added: []string{"--awscluster-concurrency=12", "--max-concurrent-reconciles=20"},
		},
		"leaderElection on": {
			spec:     `{manager: {leaderElection: {leaderElect: true, resourceName: foo, resourceNamespace: here, leaseDuration: 7h, renewDeadline: 10s, retryPeriod: 2s, resourceLock: leases}}}`,
			replaced: map[int]string{0: "--leader-elect=true"},
			added:    []string{"--leader-elect-lease-duration=25200s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=2s", "--leader-election-id=here/foo"},
		},
		"leaderElection off, and nothing more": {
			spec: `{manager: {leaderElection: {leaderElect: false, resourceName: foo, leaseDuration: 7h}}}`, replaced: map[int]string{0: "--leader-elect=false"},
		},
		"leaderElection as published, with another lease": {
			spec: `{manager: {leaderElection: {leaseDuration: 1m, resourceName: foo}}}`, added: []string{"--leader-elect-lease-duration=60s", "--leader-election-id=foo"},
		},
		"metrics.bindAddress":                       {spec: `{manager: {metrics: {bindAddress: ":4567"}}}`, added: []string{"--metrics-bind-addr=:4567"}},
		"metrics.diagnosticsAddress":                {spec: `{manager: {metrics: {diagnosticsAddress: ":8443"}}}`, added: []string{"--diagnostics-address=:8443"}},
		"metrics.insecureDiagnostics":               {spec: `{manager: {metrics: {insecureDiagnostics: true}}}`, added: []string{"--insecure-diagnostics=true"}},
		"metrics.insecureDiagnostics only if it is": {spec: `{manager: {metrics: {insecureDiagnostics: false}}}`},
		"health.healthProbeBindAddress":             {spec: `{manager: {health: {healthProbeBindAddress: ":6789"}}}`, added: []string{"--health-addr=:6789"}},
		"webhook": {
			spec:     `{manager: {webhook: {host: localhost, port: 3579, certDir: /tmp/certs}}}`,
			replaced: map[int]string{1: "--webhook-port=3579"}, added: []string{"--webhook-cert-dir=/tmp/certs", "--webhook-host=localhost"},
		},
		"manager wins over the container's args": {
			spec:     `{manager: {verbosity: 7, webhook: {port: 1}}, deployment: {containers: [{name: manager, args: {--v: "3", --webhook-port: "2", --other: "4"}}]}}`,
			replaced: map[int]string{1: "--webhook-port=1", 3: "--v=7"}, added: []string{"--other=4"},
		},
		"additionalArgs win over the container's args, fields over additionalArgs": {
			spec:     `{manager: {verbosity: 7, additionalArgs: {--v: "6", --other: "5"}}, deployment: {containers: [{name: manager, args: {--v: "3", --other: "4"}}]}}`,
			replaced: map[int]string{3: "--v=7"}, added: []string{"--other=5"},
		},
		"what no manager has a flag for": {
			spec: `{manager: {gracefulShutDown: 30s, controller: {cacheSyncTimeout: 1, recoverPanic: true}, leaderElection: {resourceLock: configmaps, resourceNamespace: here}}}`,
			warnings: ConsistOf(
				"spec.manager.gracefulShutDown is ignored: Cluster API's managers have no flag for it",
				HavePrefix("spec.manager.controller.cacheSyncTimeout is ignored"), HavePrefix("spec.manager.controller.recoverPanic is ignored"),
				HavePrefix("spec.manager.leaderElection.resourceLock is ignored"), HavePrefix("spec.manager.leaderElection.resourceNamespace without resourceName is ignored"),
			),
		},
		"--namespace among the container's args": {
			spec:     `{deployment: {containers: [{name: manager, args: {--namespace: one, namespace: two}}]}}`,
			warnings: ConsistOf(And(HavePrefix("spec.deployment.containers: --namespace of container manager is ignored"), ContainSubstring("spec.manager.cacheNamespace"))),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			want := slices.Clone(publishedArgs)
			for i, arg := range c.replaced {
				want[i] = arg
			}

			got, warnings, err := customized(t, chart, specOf(t, c.spec), nil)
			g.Expect(err).NotTo(HaveOccurred())

			container := containerNamed(t, got["tiny-controller-manager"], "manager")
			g.Expect(container.Args).To(Equal(append(want, c.added...)))

			if c.warnings == nil {
				c.warnings = BeEmpty()
			}

			g.Expect(warnings).To(c.warnings)
		})
	}
}

func TestProbes(t *testing.T) {
	g := NewWithT(t)
	got, _, err := customized(
		t,
		buildChart(t, managerComponents),
		specOf(t, `{manager: {health: {livenessEndpointName: mostly, readinessEndpointName: /readyish}}}`),
		nil,
	)
	g.Expect(err).NotTo(HaveOccurred())

	container := containerNamed(t, got["tiny-controller-manager"], "manager")
	g.Expect(container.LivenessProbe.HTTPGet.Path).To(Equal("/mostly"))
	g.Expect(container.LivenessProbe.HTTPGet.Port.StrVal).To(Equal("healthz"), "the rest of the probe stays")
	g.Expect(container.LivenessProbe.PeriodSeconds).To(BeEquivalentTo(7))
	g.Expect(container.ReadinessProbe.HTTPGet.Path).To(Equal("/readyish"))
	g.Expect(container.Args).To(Equal(publishedArgs))
}

func TestFlagsOfTheOnlyContainer(t *testing.T) {
	g := NewWithT(t)
	got, _, err := customized(
		t,
		buildChart(t, deploymentComponents("lone", true, "controller")),
		specOf(t, `{manager: {verbosity: 3}}`),
		nil,
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(containerNamed(t, got["lone"], "controller").Args).To(Equal([]string{"--v=3"}))
}

// TestAzure has the one real provider with two managers, of which one is another project's.
func TestAzure(t *testing.T) {
	folder := os.Getenv("PROVIDERS")
	if folder == "" {
		t.Skip("PROVIDERS is not set to a folder of real releases")
	}

	g := NewWithT(t)
	directory, err := source.NewDirectory(filepath.Join(folder, "infrastructure-azure"))
	g.Expect(err).NotTo(HaveOccurred())
	releases, err := directory.Versions(t.Context())
	g.Expect(err).NotTo(HaveOccurred())

	for _, release := range releases {
		b, err := directory.Fetch(t.Context(), release)
		g.Expect(err).NotTo(HaveOccurred())
		chart, err := chartgen.Build(b)
		g.Expect(err).NotTo(HaveOccurred())
		got, _, err := customized(t, chart, specOf(t, `
manager: {featureGates: {EdgeZone: true}, verbosity: 4}
additionalDeployments: {azureserviceoperator-controller-manager: {deployment: {replicas: 1}}}
`), nil)
		g.Expect(err).NotTo(HaveOccurred())

		capz, aso := got["capz-controller-manager"], got["azureserviceoperator-controller-manager"]
		g.Expect(containerNamed(t, capz, "manager").Args).
			To(ContainElements("--v=4", And(HavePrefix("--feature-gates="), ContainSubstring("EdgeZone=true"), ContainSubstring("ASOAPI=true"))), release.Name)
		g.Expect(containerNamed(t, aso, "manager").Args).
			To(And(ContainElement("--v=2"), Not(ContainElement(HavePrefix("--feature-gates")))), release.Name)
		g.Expect(*aso.Spec.Replicas).To(BeEquivalentTo(1))

		alone, _, err := customized(t, chart, specOf(t, `{manager: {verbosity: 4}}`), nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(containerNamed(t, alone["capz-controller-manager"], "manager").Args).
			To(ContainElement("--v=4"), "also if the other one is not named")
		g.Expect(containerNamed(t, alone["azureserviceoperator-controller-manager"], "manager").Args).
			To(ContainElement("--v=2"))
	}
}
