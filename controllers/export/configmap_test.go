package export

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// newProvider returns the resource of a provider.
func newProvider(kind v1alpha2.ProviderType, name string) v1alpha2.Provider {
	p := kind.New()
	p.SetNamespace("capi")
	p.SetName(name)
	p.SetUID("uid-1")

	return p
}

func newBundle(version, components string) *bundle.Bundle {
	return &bundle.Bundle{Version: version, Metadata: []byte("releaseSeries: []"), Components: []byte(components)}
}

// The names and labels are those of cluster-api-operator: other programs search for them.
func TestNames(t *testing.T) {
	for kind, want := range map[v1alpha2.ProviderType]struct{ name, configMap, typeLabel string }{
		v1alpha2.CoreProviderType:             {"cluster-api", "core-cluster-api-v1.0.0", "core"},
		v1alpha2.BootstrapProviderType:        {"kubeadm", "bootstrap-kubeadm-v1.0.0", "bootstrap"},
		v1alpha2.ControlPlaneProviderType:     {"kubeadm", "control-plane-kubeadm-v1.0.0", "control-plane"},
		v1alpha2.InfrastructureProviderType:   {"aws", "infrastructure-aws-v1.0.0", "infrastructure"},
		v1alpha2.IPAMProviderType:             {"in-cluster", "ipam-in-cluster-v1.0.0", "ipam"},
		v1alpha2.RuntimeExtensionProviderType: {"nutanix", "runtimeextension-nutanix-v1.0.0", "runtimeextension"},
		v1alpha2.AddonProviderType:            {"helm", "addon-helm-v1.0.0", "addon"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			g := NewWithT(t)
			cm, err := newConfigMap(newProvider(kind, want.name), newBundle("v1.0.0", "kind: A"))
			g.Expect(err).NotTo(HaveOccurred())

			g.Expect(cm.Namespace).To(Equal("capi"))
			g.Expect(cm.Name).To(Equal(want.configMap))
			g.Expect(cm.Labels).To(Equal(map[string]string{
				"provider.cluster.x-k8s.io/type":       want.typeLabel,
				"provider.cluster.x-k8s.io/name":       want.name,
				"provider.cluster.x-k8s.io/version":    "v1.0.0",
				"managed-by.operator.cluster.x-k8s.io": "true",
				"app.kubernetes.io/managed-by":         "capstan",
			}))
			g.Expect(cm.OwnerReferences).To(ConsistOf(metav1.OwnerReference{
				APIVersion: "operator.cluster.x-k8s.io/v1alpha2", Kind: string(kind), Name: want.name, UID: "uid-1",
			}))
			g.Expect(IsWritten(cm)).To(BeTrue())
		})
	}
}

func TestComponentsFromARegistryAreMarked(t *testing.T) {
	g := NewWithT(t)
	p := newProvider(v1alpha2.InfrastructureProviderType, "aws")
	p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{OCI: "registry.example.com/capi/aws"}

	for _, size := range []int{10, 2 * maxSize} { // cluster-api-operator loses the annotation of large ones
		cm, err := newConfigMap(p, newBundle("v1.0.0", strings.Repeat("a", size)))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cm.Labels).To(HaveKeyWithValue("provider.cluster.x-k8s.io/source", "oci"))
		g.Expect(cm.Annotations).To(HaveKeyWithValue("provider.cluster.x-k8s.io/source", "registry.example.com/capi/aws"))
	}
}

func TestComponentsAreCompressedOnlyIfNecessary(t *testing.T) {
	b := newBundle("v1.0.0", "")
	fits := maxSize - len(b.Metadata)

	for name, c := range map[string]struct {
		components string
		compressed bool
	}{
		"small":             {"kind: A", false},
		"just small enough": {strings.Repeat("a", fits), false},
		"one byte more":     {strings.Repeat("a", fits+1), true},
		"UTF-8":             {"kind: Ä", false},
		"not UTF-8":         {"kind: \xc4", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cm, err := newConfigMap(newProvider(v1alpha2.AddonProviderType, "helm"), newBundle("v1.0.0", c.components))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cm.Data).To(HaveKeyWithValue("metadata", string(b.Metadata)))

			if !c.compressed {
				g.Expect(cm.Data["components"] == c.components).To(BeTrue())
				g.Expect(cm.BinaryData).To(BeEmpty())
				g.Expect(cm.Annotations).To(BeEmpty())

				return
			}

			g.Expect(cm.Annotations).To(HaveKeyWithValue("provider.cluster.x-k8s.io/compressed", "true"))
			g.Expect(cm.Data).NotTo(HaveKey("components"))

			zip, err := gzip.NewReader(bytes.NewReader(cm.BinaryData["components"]))
			g.Expect(err).NotTo(HaveOccurred())
			content, err := io.ReadAll(zip)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(content) == c.components).To(BeTrue())
		})
	}
}

func TestRefusedContent(t *testing.T) {
	random := make([]byte, maxSize+maxSize/8)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(random)

	for name, c := range map[string]struct {
		provider, version, components string
		reason                        string
	}{
		"too large compressed": {
			"aws", "v1.0.0", string(random),
			"the compressed components have 1153 KiB, and a ConfigMap holds 1024 KiB",
		},
		"a version with build metadata": {"aws", "v1.0.0+build", "kind: A", "cannot hold the provider's name and version"},
		"a version in upper case":       {"aws", "v1.0.0-RC1", "kind: A", "cannot hold the provider's name and version"},
		"a name longer than a label":    {strings.Repeat("a", 64), "v1.0.0", "kind: A", "no more than 63"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := newProvider(v1alpha2.InfrastructureProviderType, c.provider)
			_, err := newConfigMap(p, newBundle(c.version, c.components))
			g.Expect(err).To(BeAssignableToTypeOf(&RefusedError{}))
			g.Expect(err).To(MatchError(And(
				HavePrefix("the components are not in ConfigMap capi/infrastructure-"+c.provider+"-"+c.version),
				ContainSubstring("which does not affect the provider"), ContainSubstring(c.reason))))
		})
	}
}
