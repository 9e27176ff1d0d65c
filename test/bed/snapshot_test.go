package bed

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const ships = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": {"name": "ships.example.com"},
	"spec": {"group": "example.com", "scope": "Cluster", "names": {"kind": "Ship", "plural": "ships"}, "versions": [
		{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`

func TestSnapshot(t *testing.T) {
	g := NewWithT(t)
	clusters := map[any]bool{}

	for range 2 {
		b := start(t, Options{
			Nodes: -1, WithoutControllers: true, WithoutCertManager: true, LowCPU: true,
			CRDs: []*unstructured.Unstructured{object(t, ships)},
		})
		c := client(t, b, "tester")

		ship := object(t, `{"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "one"}}`)
		kind := c.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "ships"})
		_, err := kind.Create(t.Context(), ship, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())

		list, err := kind.List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Items).To(HaveLen(1), "a bed has no objects of another one")

		created, err := b.Requests(func(r Request) bool { return r.Verb == "create" && r.Resource == crds.Resource })
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(created).To(BeEmpty())

		system, err := c.Resource(namespaces).Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())

		clusters[system.GetUID()] = true
	}

	g.Expect(clusters).To(HaveLen(2), "each bed is a cluster of its own")
}

func TestUnusedSnapshots(t *testing.T) {
	g := NewWithT(t)
	cache := t.TempDir()

	for name, age := range map[string]time.Duration{
		"etcd-new": 0, "etcd-used": 2 * unusedLimit, "etcd-old": 2 * unusedLimit, "etcd-older.new": 2 * unusedLimit,
	} {
		folder, then := filepath.Join(cache, name), time.Now().Add(-age)
		g.Expect(os.Mkdir(folder, 0o755)).To(Succeed())
		g.Expect(os.Chtimes(folder, then, then)).To(Succeed())
	}

	g.Expect(os.WriteFile(filepath.Join(cache, "etcd.lock"), nil, 0o600)).To(Succeed())
	g.Expect(use(filepath.Join(cache, "etcd-used"))).To(Succeed())
	g.Expect(use(filepath.Join(cache, "etcd-missing"))).To(MatchError(os.ErrNotExist))
	g.Expect(dropUnused(cache)).To(Succeed())

	left, err := filepath.Glob(filepath.Join(cache, "*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(ConsistOf(HaveSuffix("etcd-new"), HaveSuffix("etcd-used"), HaveSuffix("etcd.lock")))
}
