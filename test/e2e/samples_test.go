package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// The samples of config/samples, as users apply them. A small provider is published as each that they name, in a folder
// that the configuration names instead of the projects. Those with servers and registries are left out:
// there are none with these names.
var _ = Describe("The samples", Ordered, func() {
	var (
		w      *world
		folder string
	)

	// readSample returns the resource in a file.
	readSample := func(file string) v1alpha2.Provider {
		GinkgoHelper()

		content, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())

		var kind metav1.TypeMeta
		Expect(yaml.Unmarshal(content, &kind)).To(Succeed())

		p := v1alpha2.ProviderType(kind.Kind).New()
		Expect(yaml.UnmarshalStrict(content, p)).To(Succeed())

		return p
	}
	samplesOf := func(pattern string) map[string]v1alpha2.Provider {
		GinkgoHelper()

		found := map[string]v1alpha2.Provider{}
		for _, file := range must(filepath.Glob(filepath.Join(root, "config", "samples", pattern))) {
			found[file] = readSample(file)
		}

		Expect(found).NotTo(BeEmpty())

		return found
	}
	apply := func(ctx context.Context, file string, p v1alpha2.Provider) {
		GinkgoHelper()

		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.GetNamespace()}}
		Expect(client.IgnoreAlreadyExists(w.client.Create(ctx, namespace))).To(Succeed())
		w.run(ctx, "kubectl", "apply", "--server-side", "-f", file)
	}

	BeforeAll(func(ctx SpecContext) {
		folder = GinkgoT().TempDir()
		config := "providers:\n"

		for _, p := range samplesOf("*provider.yaml") {
			t, version := p.ProviderType(), p.GetSpec().Version
			release := small(p)
			place := filepath.Join(folder, release.Bundle.Provider.Label, version)

			Expect(os.MkdirAll(place, 0o755)).To(Succeed())
			Expect(os.WriteFile(filepath.Join(place, t.ComponentsFile()), release.Bundle.Components, 0o600)).To(Succeed())
			Expect(os.WriteFile(filepath.Join(place, "metadata.yaml"), release.Bundle.Metadata, 0o600)).To(Succeed())

			config += fmt.Sprintf("- {name: %s, type: %s, url: 'file://%s/%s/latest/%s'}\n",
				p.GetName(), t, folder, release.Bundle.Provider.Label, t.ComponentsFile())
		}

		file := filepath.Join(folder, "clusterctl.yaml")
		Expect(os.WriteFile(file, []byte(config), 0o600)).To(Succeed())

		w = newWorld()
		w.start("--config=" + file)
	})

	It("of every kind are installed as they are", func(ctx SpecContext) {
		all := samplesOf("*provider.yaml")
		Expect(all).To(HaveLen(len(v1alpha2.ProviderTypes())))

		for file, p := range all {
			apply(ctx, file, p)
		}

		By("creating the Secret as a comment says")

		secret := &corev1.Secret{ObjectMeta: named("capa-system", "aws-variables")}
		secret.StringData = map[string]string{"AWS_B64ENCODED_CREDENTIALS": "c2VjcmV0"}
		Expect(w.client.Create(ctx, secret)).To(Succeed())

		for _, p := range all {
			Eventually(w.read(ctx, p)).Should(beReady(p.GetSpec().Version))
			Expect(p.GetStatus().Ignored).To(BeEmpty())
		}
	})

	It("with a ConfigMap is installed from it", func(ctx SpecContext) {
		for file, p := range samplesOf("source-configmap.yaml") {
			Expect(w.client.Create(ctx, must(small(p).ConfigMap()))).To(Succeed())

			apply(ctx, file, p)
			Eventually(w.read(ctx, p)).Should(And(beReady(p.GetSpec().Version), HaveField("Status.Chart.Source", "configmap")))
		}
	})

	It("with a folder that is not there names it", func(ctx SpecContext) {
		for file, p := range samplesOf("source-directory.yaml") {
			apply(ctx, file, p)
			Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.VersionNotFoundReason,
				"folder /providers/infrastructure-docker does not exist"))
		}
	})
})

// small returns a small release of what a resource asks for, with the variables of AWS's.
func small(p v1alpha2.Provider) *harness.Release {
	version := p.GetSpec().Version
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	label := v1alpha2.Label(p)

	release := harness.Small(p.ProviderType(), types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()},
		strings.ReplaceAll(label, "-", ""), version)

	release.Bundle.Metadata = fmt.Appendf(nil, "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n"+
		"releaseSeries:\n- {major: %s, minor: %s, contract: v1beta2}\n", parts[0], parts[1])

	if label == "infrastructure-aws" {
		release.Bundle.Components = []byte(strings.ReplaceAll(string(release.Bundle.Components), `"--level=${LEVEL:=info}"`,
			`"--pools=${EXP_MACHINE_POOL:=false}", "--credentials=${AWS_B64ENCODED_CREDENTIALS}"`))
	}

	return release
}
