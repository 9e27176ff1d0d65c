package contracts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// initializing is held while clusterctl checks the management cluster, in which it creates its own CRD first.
var initializing sync.Mutex

// publish writes a release to a local repository of clusterctl, next to the sample of core, and returns clusterctl's
// configuration.
func (r *release) publish(t *testing.T) string {
	g := NewWithT(t)
	dir := t.TempDir()
	folder := filepath.Join(dir, r.bundle.Provider.Label, r.bundle.Version)
	g.Expect(os.MkdirAll(folder, 0o755)).To(Succeed())

	files := append([]bundle.File{
		{Name: "infrastructure-components.yaml", Data: r.bundle.Components},
		{Name: "metadata.yaml", Data: r.bundle.Metadata},
	}, r.bundle.Templates...)

	for _, f := range files {
		if f.Data != nil {
			g.Expect(os.WriteFile(filepath.Join(folder, f.Name), f.Data, 0o600)).To(Succeed())
		}
	}

	g.Expect(os.CopyFS(filepath.Join(dir, "cluster-api"), os.DirFS("../data/providers/cluster-api"))).To(Succeed())

	text := fmt.Sprintf(`providers:
- {name: cluster-api, type: CoreProvider, url: %[1]s/cluster-api/v1.0.0/core-components.yaml}
- {name: %[2]q, type: InfrastructureProvider, url: %[1]s/%[3]s/%[4]s/infrastructure-components.yaml}
cert-manager: {url: %[1]s/none/v1.0.0/cert-manager.yaml, version: v1.0.0}
`, dir, r.bundle.Provider.Name, r.bundle.Provider.Label, r.bundle.Version)
	configuration := filepath.Join(dir, "clusterctl.yaml")
	g.Expect(os.WriteFile(configuration, []byte(text), 0o600)).To(Succeed())

	return configuration
}

// initialize runs `clusterctl init`, and returns why it refuses the provider. It installs nothing, because there is no
// cert-manager to install first.
func initialize(t *testing.T, r *release) string {
	initializing.Lock()
	defer initializing.Unlock()

	c, err := client.New(t.Context(), r.publish(t))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	_, err = c.Init(t.Context(), client.InitOptions{
		Kubeconfig:              client.Kubeconfig{Path: r.bed.Kubeconfig()},
		CoreProvider:            "cluster-api:v1.0.0",
		BootstrapProviders:      []string{"-"},
		ControlPlaneProviders:   []string{"-"},
		InfrastructureProviders: []string{r.bundle.Provider.Name + ":" + r.bundle.Version},
	})
	NewWithT(t).Expect(err).To(HaveOccurred())

	if strings.Contains(err.Error(), "cert-manager.yaml") {
		return ""
	}

	return err.Error()
}

// generate runs `clusterctl generate cluster`, and returns why it fails, or which object is missing.
func generate(t *testing.T, r *release) string {
	c, err := client.New(t.Context(), r.publish(t))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	generated, err := c.GetClusterTemplate(t.Context(), client.GetClusterTemplateOptions{
		ProviderRepositorySource: &client.ProviderRepositorySourceOptions{
			InfrastructureProvider: r.bundle.Provider.Name + ":" + r.bundle.Version,
		},
		ClusterName:       "one",
		TargetNamespace:   namespace,
		KubernetesVersion: kubernetesVersion,
	})
	if err != nil {
		return err.Error()
	}

	if !slices.ContainsFunc(generated.Objs(), func(o unstructured.Unstructured) bool {
		return o.GetKind() == "ClusterClass" && o.GetName() == "quick"
	}) {
		return "ClusterClass quick is missing"
	}

	return ""
}

// upgrade writes the CRDs again once cert-manager has injected a certificate into them, with the request of `clusterctl
// upgrade`, and returns why the API server rejects it. clusterctl repeats it for a minute before it gives up.
func upgrade(t *testing.T, r *release) string {
	g := NewWithT(t)

	for _, o := range parse(t, r.bundle.Components) {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}

		installed := o.DeepCopy()

		if _, converted, _ := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook"); converted {
			g.Expect(unstructured.SetNestedField(installed.Object, encoded(r.bed.Config().CAData),
				"spec", "conversion", "webhook", "clientConfig", "caBundle")).To(Succeed())
		}

		g.Expect(r.client.Create(t.Context(), installed)).To(Succeed())
		r.waitEstablished(t, installed)

		if err := r.client.Patch(t.Context(), o, ctrlclient.Merge); err != nil {
			return err.Error()
		}
	}

	return ""
}
