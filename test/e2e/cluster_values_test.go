package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("helm install with a file of values", func() {
	It("makes an empty cluster a management cluster", func(ctx SpecContext) {
		w := emptyWorld(bed.Options{})
		values := file("cluster.yaml", `
providers:
- {kind: CoreProvider, name: cluster-api, namespace: capi-system}
- {kind: BootstrapProvider, name: kubeadm, namespace: capi-kubeadm-bootstrap-system}
- {kind: ControlPlaneProvider, name: kubeadm, namespace: capi-kubeadm-control-plane-system}
- kind: InfrastructureProvider
  name: aws
  namespace: capa-system
  secretVariables: {AWS_B64ENCODED_CREDENTIALS: `+harness.AWSVariables["AWS_B64ENCODED_CREDENTIALS"]+`}
`)

		chart := must(harness.BareChart(root, GinkgoT().TempDir()))
		w.run(ctx, "helm", "install", "capstan", chart, "--namespace", "capstan-system",
			"--create-namespace", "--values", values)
		w.start("--config=" + clusterctlConfig(samples,
			"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-aws"))

		for _, p := range []v1alpha2.Provider{
			only(v1alpha2.CoreProviderType, "capi-system", "cluster-api", ""),
			only(v1alpha2.BootstrapProviderType, "capi-kubeadm-bootstrap-system", "kubeadm", ""),
			only(v1alpha2.ControlPlaneProviderType, "capi-kubeadm-control-plane-system", "kubeadm", ""),
			only(v1alpha2.InfrastructureProviderType, "capa-system", "aws", ""),
		} {
			Eventually(w.read(ctx, p)).Should(beReadyWith(v1alpha2.HealthyReason))
		}
	})
})
