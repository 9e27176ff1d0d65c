package upgrade

import (
	"context"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// installation is a provider with what is published of it, oldest first.
type installation struct {
	v1alpha2.Provider

	releases []*harness.Release
	// then is the change of the spec that results in the third revision.
	then func(*v1alpha2.ProviderSpec)
}

// small returns a small provider with the versions, in a namespace of its own.
func small(providerType v1alpha2.ProviderType, name, object string, versions ...string) *installation {
	i := &installation{then: func(spec *v1alpha2.ProviderSpec) {
		spec.Deployment = &v1alpha2.DeploymentSpec{PodAnnotations: map[string]string{"revision": "third"}}
	}}

	for _, version := range versions {
		key := types.NamespacedName{Namespace: object, Name: name}
		i.releases = append(i.releases, harness.Small(providerType, key, object, version))
	}

	if len(versions) > 2 {
		i.then = func(spec *v1alpha2.ProviderSpec) { spec.Version = versions[2] }
	}

	i.Provider = i.releases[0].Resource()

	return i
}

// infrastructure is like small, for two versions of an infrastructure provider.
func infrastructure(name string) *installation {
	return small(v1alpha2.InfrastructureProviderType, name, name, "v1.0.0", "v1.0.1")
}

// older are the versions that the real providers have before those of harness.Standard.
var older = map[string]string{"infrastructure-aws": "v2.10.3"}

// five returns the five providers of the demo, or small ones without a folder of real releases.
func five(ctx context.Context) []*installation {
	GinkgoHelper()

	folder := os.Getenv(testproviders.Variable)
	if folder == "" {
		GinkgoWriter.Println(testproviders.Variable + " is not set: the five providers are small ones")

		return []*installation{
			small(v1alpha2.CoreProviderType, "cluster-api", "core", "v1.0.0", "v1.0.1"),
			small(v1alpha2.BootstrapProviderType, "kubeadm", "bootstrap", "v1.0.0", "v1.0.1"),
			small(v1alpha2.ControlPlaneProviderType, "kubeadm", "controlplane", "v1.0.0", "v1.0.1"),
			infrastructure("docker"),
			infrastructure("aws"),
		}
	}

	var all []*installation

	for _, wanted := range harness.Standard {
		i := infrastructure("real")
		i.releases = nil

		before := wanted

		before.Version = older[wanted.Label]
		if before.Version == "" {
			before.Version = "v1.12.11"
		}

		for _, version := range []harness.Wanted{before, wanted} {
			loaded, err := harness.Load(ctx, folder, version)
			Expect(err).NotTo(HaveOccurred())
			Expect(loaded.Bundle.Version).To(Equal(version.Version))

			i.releases = append(i.releases, loaded)
		}

		i.Provider = i.releases[0].Resource()
		all = append(all, i)
	}

	return all
}

// staged returns a provider whose version v1.1.0 has two waves: a Deployment that runs on nodes with the label gate,
// and a ConfigMap.
func staged() *installation {
	i := small(v1alpha2.InfrastructureProviderType, "staged", "staged", "v1.0.0", "v1.0.1", "v1.1.0")
	i.GetSpec().Release = &v1alpha2.ReleaseSpec{Timeout: &metav1.Duration{Duration: time.Hour}}
	i.releases[2].Bundle.Components = append(i.releases[2].Bundle.Components, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gate, namespace: staged-system, annotations: {capstan.dev/apply-order: "-10"}}
spec:
  selector: {matchLabels: {app: gate}}
  template:
    metadata: {labels: {app: gate}}
    spec:
      nodeSelector: {gate: open}
      containers: [{name: gate, image: registry.example.com/gate}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: last, namespace: staged-system, annotations: {capstan.dev/apply-order: "10"}}
`...)

	return i
}

// impatient makes what is not healthy at once fail.
var impatient = v1alpha2.ReleaseSpec{Timeout: &metav1.Duration{Duration: 5 * time.Second}, Retries: ptr.To(int32(0))}

// failing returns a provider whose version v1.1.0 fits on no node.
func failing() *installation {
	i := small(v1alpha2.InfrastructureProviderType, "failing", "failing", "v1.0.0", "v1.0.1", "v1.1.0")
	i.then = func(spec *v1alpha2.ProviderSpec) { spec.Version, spec.Release = "v1.1.0", &impatient }

	newest := i.releases[2].Bundle
	newest.Components = []byte(strings.Replace(string(newest.Components),
		"      containers:", "      nodeSelector: {no: such-node}\n      containers:", 1))

	return i
}

// automatic returns a provider that upgrades by itself.
func automatic() *installation {
	i := infrastructure("automatic")
	i.GetSpec().Version = "~1.0"
	i.GetSpec().UpgradePolicy = &v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradePatch}

	return i
}

// in makes another cluster the target of a provider.
func (i *installation) in(ctx context.Context, here client.Client, there *bed.Bed) *installation {
	GinkgoHelper()

	kubeconfig, err := os.ReadFile(there.Kubeconfig())
	Expect(err).NotTo(HaveOccurred())

	name := metav1.ObjectMeta{Namespace: i.GetNamespace(), Name: "there"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name.Namespace}}
	Expect(here.Create(ctx, namespace)).To(Succeed())
	Expect(here.Create(ctx, &corev1.Secret{
		ObjectMeta: name, StringData: map[string]string{"value": string(kubeconfig)},
	})).To(Succeed())

	i.GetSpec().KubeConfig = &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
		LocalSecretReference: v1alpha2.LocalSecretReference{Name: name.Name}, Key: "value",
	}}

	return i
}

// edit changes the spec of a provider.
func (w *world) edit(ctx context.Context, i *installation, change func(*v1alpha2.ProviderSpec)) {
	GinkgoHelper()
	Expect(bedtest.Edit(ctx, w.client, i.Provider, func(p v1alpha2.Provider) { change(p.GetSpec()) })).To(Succeed())
}
