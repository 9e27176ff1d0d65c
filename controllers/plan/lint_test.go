package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// TestFindings checks that what is wrong with components is known when their chart is built, and not again:
// neither while it is not stored, nor after a restart, nor when the source is read again.
func TestFindings(t *testing.T) {
	g := NewWithT(t)
	p := nonconforming(t)
	c := writableClient()

	first, planner, err := find(t, c, p, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.Findings()).To(SatisfyAll(
		HavePrefix("infrastructure-docker v1.0.0 does not conform to the contracts of Cluster API: 1 error"),
		ContainSubstring("(`capstan chart lint` has details): references/service-account: Deployment "),
	))

	_, err = planner.Charts.Save(t.Context(), p, first)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.Findings()).To(BeEmpty(), "the planner keeps the chart")

	p.Status.StoredCharts = first.Records(&p.Status)
	p.Status.Chart = first.Status(nil)

	for _, refresh := range []bool{false, true} {
		again, _, err := find(t, c, p, refresh)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.Digest).To(Equal(first.Digest))
		g.Expect(again.Findings()).To(BeEmpty())
	}
}

// nonconforming publishes a provider without the ServiceAccount of its manager.
func nonconforming(t *testing.T) *v1alpha2.InfrastructureProvider {
	t.Helper()
	g := NewWithT(t)
	server, p := publish(t)
	folder := t.TempDir()

	g.Expect(os.CopyFS(folder, os.DirFS(filepath.Join(samples, "infrastructure-docker", "v1.0.0")))).To(Succeed())

	file := filepath.Join(folder, "infrastructure-components.yaml")
	components, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())

	broken := strings.Replace(string(components), "serviceAccountName: capd-manager", "serviceAccountName: gone", 1)
	g.Expect(broken).NotTo(Equal(string(components)))
	g.Expect(os.WriteFile(file, []byte(broken), 0o600)).To(Succeed())
	g.Expect(server.PublishFolder("owner/docker", "v1.0.0", folder)).To(Succeed())

	return p
}

// TestNoFindings: neither components that conform nor advice are reported.
func TestNoFindings(t *testing.T) {
	g := NewWithT(t)

	folder, err := source.NewDirectory(filepath.Join(samples, "cluster-api"))
	g.Expect(err).NotTo(HaveOccurred())
	versions, err := folder.Versions(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	b, err := folder.Fetch(t.Context(), versions[0])
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(linted(t, b)).To(BeEmpty())
	g.Expect(describe(b, []lint.Finding{
		{Rule: "a/b", Level: lint.Info}, {Rule: "c/d", Level: lint.Warning, Accepted: "Users create it."},
	})).To(BeEmpty())
}

// linted parses the components of a bundle and lints them.
func linted(t *testing.T, b *bundle.Bundle) string {
	t.Helper()

	components, err := bundle.ParseComponents(b.Components)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return lintComponents(b, components)
}

// TestLintIsBounded: components that no provider publishes are not linted.
func TestLintIsBounded(t *testing.T) {
	g := NewWithT(t)
	b := &bundle.Bundle{Provider: source.Provider(v1alpha2.InfrastructureProviderType, "docker"), Version: "v1.0.0"}

	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n"

	b.Components = []byte(strings.Repeat(object, 2))
	g.Expect(linted(t, b)).To(ContainSubstring("components/duplicate-object"))

	b.Components = []byte(strings.Repeat(object, maxLintedObjects+1))
	g.Expect(linted(t, b)).To(BeEmpty())

	b.Components = []byte(object + object + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata:\n" +
		strings.Repeat("- 1\n", maxLintedValues))
	g.Expect(linted(t, b)).To(BeEmpty())
}

// TestLintIsFast: components that are made to have many findings are linted in seconds.
func TestLintIsFast(t *testing.T) {
	g := NewWithT(t)
	b := &bundle.Bundle{Provider: source.Provider(v1alpha2.ControlPlaneProviderType, "slow"), Version: "v1.0.0"}

	var subjects, versions, label strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&subjects, "\n\n\n\n- {kind: ServiceAccount, name: a%d}", i)
		fmt.Fprintf(&versions, "\n  - {name: v%d, served: true}", i)
		fmt.Fprintf(&label, "_v%d", 20_000+i)
	}

	b.Components = []byte("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n" +
		"metadata: {name: a}\nsubjects:" +
		subjects.String() + "\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n" +
		"  name: a\n  labels: {cluster.x-k8s.io/v1beta2: " + label.String() + "}\nspec:\n  group: a\n" +
		"  names: {kind: AControlPlane, plural: a}\n  versions:" + versions.String() + "\n")

	start := time.Now()

	g.Expect(linted(t, b)).To(ContainSubstring("references/subject"))
	g.Expect(time.Since(start)).To(BeNumerically("<", 10*time.Second))
}
