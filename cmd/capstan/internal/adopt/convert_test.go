package adopt

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/charts"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// convertText converts values and returns the result and the warnings.
func convertText(t *testing.T, old string) (values, warnings string, err error) {
	t.Helper()

	var out, failures bytes.Buffer

	options := &cli.Options{IOStreams: genericiooptions.IOStreams{
		In: strings.NewReader(old), Out: &out, ErrOut: &failures,
	}}
	err = run(options, "-")

	return out.String(), failures.String(), err
}

func TestConvert(t *testing.T) {
	for name, c := range map[string]struct{ old, want, warnings string }{
		"nothing": {old: "{}", want: "providers: []"},
		"an infrastructure, which implies the others": {
			old: "infrastructure: {docker: {}}\nconfigSecret: {name: variables, namespace: default}",
			want: `
providers:
- {kind: CoreProvider, name: cluster-api, namespace: capi-system,
   spec: {configSecret: {name: variables, namespace: default}}}
- {kind: BootstrapProvider, name: kubeadm, namespace: capi-kubeadm-bootstrap-system,
   spec: {configSecret: {name: variables, namespace: default}}}
- {kind: ControlPlaneProvider, name: kubeadm, namespace: capi-kubeadm-control-plane-system,
   spec: {configSecret: {name: variables, namespace: default}}}
- {kind: InfrastructureProvider, name: docker, namespace: docker-infrastructure-system,
   spec: {configSecret: {name: variables, namespace: default}}}`,
		},
		"an addon, which implies core": {
			old: "addon: {helm: null}",
			want: `
providers:
- {kind: CoreProvider, name: cluster-api, namespace: capi-system}
- {kind: AddonProvider, name: helm, namespace: helm-addon-system}`,
		},
		"all fields of a provider": {
			old: `
core: {cluster-api: {namespace: capi, version: v1.13.5, createNamespace: false, configSecret: {name: own},
  manager: {featureGates: {ClusterTopology: true}, metrics: {diagnosticsAddress: "localhost:8080"}, verbosity: 5},
  deployment: {replicas: 2}, manifestPatches: ["kind: ConfigMap"], patches: [{patch: "kind: ConfigMap"}],
  additionalManifests: {name: more, manifests: "kind: ConfigMap"}, fetchConfig: {url: "https://example.com/x"},
  other: 1}}
bootstrap: {kubeadm: {createNamespace: false}}`,
			want: `
createNamespaces: false
providers:
- {kind: CoreProvider, name: cluster-api, namespace: capi, spec: {version: v1.13.5, configSecret: {name: own},
   manager: {featureGates: {ClusterTopology: true}, metrics: {diagnosticsAddress: "localhost:8080"}},
   deployment: {replicas: 2}, manifestPatches: ["kind: ConfigMap"], patches: [{patch: "kind: ConfigMap"}],
   additionalManifests: {name: more}, fetchConfig: {url: "https://example.com/x"}}}
- {kind: BootstrapProvider, name: kubeadm, namespace: kubeadm-bootstrap-system}`,
			warnings: "Warning: core.cluster-api.additionalManifests: create ConfigMap more with the key manifests yourself; " +
				"the chart does not\n" +
				"Warning: core.cluster-api.manager.verbosity has no effect in cluster-api-operator's chart, and is left out\n" +
				"Warning: core.cluster-api.other has no effect in cluster-api-operator's chart, and is left out\n",
		},
		"sources and Deployments for infrastructures": {
			old: `
core: {cluster-api: {}}
bootstrap: {kubeadm: {}}
controlPlane: {kubeadm: {createNamespace: false}}
infrastructure: {aws: {version: v2.11.1}}
fetchConfig: {aws: {url: "https://example.com/aws"}, kubeadm: {url: "https://example.com/kubeadm"}}
additionalDeployments: {aso: {replicas: 2}}`,
			want: `
providers:
- {kind: CoreProvider, name: cluster-api, namespace: capi-system}
- {kind: BootstrapProvider, name: kubeadm, namespace: kubeadm-bootstrap-system}
- {kind: ControlPlaneProvider, name: kubeadm, namespace: kubeadm-control-plane-system}
- {kind: InfrastructureProvider, name: aws, namespace: aws-infrastructure-system, spec: {version: v2.11.1,
   fetchConfig: {url: "https://example.com/aws"}, additionalDeployments: {aso: {replicas: 2}}}}`,
			warnings: "Warning: fetchConfig.kubeadm has no effect in cluster-api-operator's chart, and is left out\n" +
				"Warning: createNamespace is false for some providers only; the chart creates the namespaces of all " +
				"or of none, so all are created\n",
		},
		"settings of the operator": {
			old: `
replicaCount: 1
leaderElection: {enabled: false, leaseDuration: 30s, other: 1}
image: {manager: {repository: example.com/operator}}
env: {manager: [{name: HTTPS_PROXY, value: "http://proxy.example.com"}]}
diagnosticsAddress: ":8444"
healthAddr: ":9441"
profilerAddress: ":6060"
insecureDiagnostics: true
watchConfigSecret: true
watchConfigMap: true
imagePullSecrets: {}
resources: {manager: {limits: {memory: 300Mi}}}
tolerations: [{key: dedicated, operator: Exists}]
nameOverride: x
volumeMounts: {manager: [{name: ca, mountPath: /ca}]}
volumes: [{name: ca, secret: {secretName: ca}}]`,
			want: `
providers: []
replicas: 1
flags: {enable-leader-election: false, leader-election-lease-duration: 30s, metrics-bind-address: ":8444",
  health-probe-bind-address: ":9441",  metrics-secure: false, watch-configsecret: true, watch-configmap: true}
env: [{name: HTTPS_PROXY, value: "http://proxy.example.com"}]
resources: {limits: {memory: 300Mi}}
tolerations: [{key: dedicated, operator: Exists}]
volumeMounts: [{name: ca, mountPath: /ca}]
volumes: [{name: ca, secret: {secretName: ca}}]`,
			warnings: "Warning: image.manager is that of cluster-api-operator, and is left out; set image.repository to that " +
				"of Capstan's image, if it does not come from its usual place\n" +
				"Warning: leaderElection.other has no counterpart, and is left out\n" +
				"Warning: nameOverride has no counterpart, and is left out\n",
		},
		"settings without a counterpart": {
			old: `
logLevel: 5
profilerAddress: ":7070"
contentionProfiling: true
enableHelmHook: false
containerSecurityContext: {manager: {runAsUser: 1}}
securityContext: {runAsNonRoot: true}
strategy: {type: Recreate}
imagePullSecrets: {name: mirror}
resources: {kubeRBACProxy: {limits: {memory: 1Gi}}}`,
			want: "providers: []",
			warnings: "Warning: containerSecurityContext has no counterpart, and is left out\n" +
				"Warning: contentionProfiling has no counterpart, and is left out\n" +
				"Warning: enableHelmHook has no counterpart, and is left out\n" +
				"Warning: imagePullSecrets has no counterpart, and is left out\n" +
				"Warning: logLevel has no counterpart, and is left out\n" +
				"Warning: profilerAddress has no counterpart, and is left out\n" +
				"Warning: resources.kubeRBACProxy has no counterpart, and is left out\n" +
				"Warning: securityContext has no counterpart, and is left out\n" +
				"Warning: strategy has no counterpart, and is left out\n",
		},
		"defaults, as of helm get values --all": {
			old: `
core: {}
fetchConfig: {}
configSecret: {}
logLevel: 2
image: {manager: {repository: registry.k8s.io/capi-operator/cluster-api-operator, tag: v0.29.0, pullPolicy: Always}}
env: {manager: []}
profilerAddress: ":6060"
contentionProfiling: false
imagePullSecrets: {}
containerSecurityContext: {}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions:
        - {key: kubernetes.io/arch, operator: In, values: [amd64, arm64, ppc64le]}
        - {key: kubernetes.io/os, operator: In, values: [linux]}
volumes: [{name: cert, secret: {defaultMode: 420, secretName: capi-operator-webhook-service-cert}}]
volumeMounts: {manager: [{mountPath: /tmp/k8s-webhook-server/serving-certs, name: cert, readOnly: true}]}
enableHelmHook: true`,
			want: "providers: []",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			values, warnings, err := convertText(t, c.old)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(values).To(MatchYAML(c.want))
			g.Expect(warnings).To(Equal(c.warnings))

			// The chart accepts the values.
			chart, err := charts.Operator()
			g.Expect(err).NotTo(HaveOccurred())

			var parsed map[string]any
			g.Expect(yaml.Unmarshal([]byte(values), &parsed)).To(Succeed())

			_, err = chartutil.ToRenderValues(chart, parsed, chartutil.ReleaseOptions{}, nil)
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

func TestConvertErrors(t *testing.T) {
	for old, want := range map[string]string{
		"- list":                      "- is no file with values: ",
		"infrastructure: docker":      "-: infrastructure: expected a map",
		"infrastructure: {docker: 1}": "-: infrastructure.docker: expected a map",
		"core: {cluster-api: {additionalManifests: x}}": "-: core.cluster-api: additionalManifests: expected a map",
		"# " + strings.Repeat("x", maxFile):             "- is larger than 4.0 MiB, which no file with values is",
	} {
		_, _, err := convertText(t, old)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)), "%.50s", old)
	}

	file := filepath.Join(t.TempDir(), "missing.yaml")
	NewWithT(t).Expect(run(&cli.Options{}, file)).To(MatchError(os.ErrNotExist))
}
