package safety_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drone/envsubst/v2"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/controllers/crds/safety"
	"github.com/capstan-project/capstan/test/testproviders"
)

// upgrade returns the changes between the CRDs of two releases.
func upgrade(g Gomega, folder, provider, from, to string) []safety.Change {
	var changes []safety.Change

	desired := released(g, folder, provider, to)
	for _, d := range released(g, folder, provider, from) {
		if i := slices.IndexFunc(desired, func(new *crd) bool { return new.Name == d.Name }); i >= 0 {
			changes = append(changes, safety.Change{Live: d, Desired: desired[i]})
		}
	}

	return changes
}

// TestRealUpgrades counts what the rules find in consecutive releases. Without objects none of it is
// an error: a cluster that does not use a field does not need it.
func TestRealUpgrades(t *testing.T) {
	folder := testproviders.Folder(t)

	for _, c := range []struct {
		provider, from, to      string
		errors, warnings, notes int
	}{
		{"addon-helm", "v0.5.3", "v0.6.4", 0, 0, 0},
		{"bootstrap-kubeadm", "v1.9.11", "v1.12.11", 0, 437, 4},
		{"bootstrap-kubeadm", "v1.12.11", "v1.13.5", 0, 6, 0},
		{"bootstrap-kubeadm", "v1.13.5", "v1.14.0", 0, 0, 0},
		{"cluster-api", "v1.9.11", "v1.12.11", 0, 348, 26},
		{"cluster-api", "v1.12.11", "v1.13.5", 0, 17, 0},
		{"cluster-api", "v1.13.5", "v1.14.0", 0, 0, 0},
		{"control-plane-kubeadm", "v1.9.11", "v1.12.11", 0, 445, 4},
		{"control-plane-kubeadm", "v1.12.11", "v1.13.5", 0, 5, 0},
		{"control-plane-kubeadm", "v1.13.5", "v1.14.0", 0, 0, 0},
		{"infrastructure-aws", "v2.10.3", "v2.11.1", 0, 1, 0},
		{"infrastructure-azure", "v1.25.1", "v1.26.0", 0, 0, 0},
		{"infrastructure-docker", "v1.9.11", "v1.12.11", 0, 27, 12},
		{"infrastructure-docker", "v1.12.11", "v1.13.5", 0, 9, 6},
		{"infrastructure-docker", "v1.13.5", "v1.14.0", 10, 0, 0}, // spec.bootstrapped and status.backend are removed
		{"infrastructure-gcp", "v1.11.2", "v1.12.0", 0, 0, 0},
		{"ipam-in-cluster", "v0.1.0", "v1.0.3", 0, 2, 0},
		// The storage version of some of these moves without a conversion webhook, and drops fields
		// of templates.
		{"bootstrap-k0smotron", "v1.10.9", "v2.1.0", 4, 0, 6},
		{"control-plane-k0smotron", "v1.10.9", "v2.1.0", 13, 7, 8},
		{"infrastructure-k0smotron", "v1.10.9", "v2.1.0", 1, 0, 9},
	} {
		t.Run(c.provider+"/"+c.from+"/"+c.to, func(t *testing.T) {
			g := NewWithT(t)
			changes := upgrade(g, folder, c.provider, c.from, c.to)
			start := time.Now()
			report, err := safety.Check(t.Context(), safety.Input{Changes: changes})
			g.Expect(err).NotTo(HaveOccurred())
			t.Logf("%d CRDs in %s", len(changes), time.Since(start))
			g.Expect([]int{report.Count(safety.Error), report.Count(safety.Warning), report.Count(safety.Info)}).
				To(Equal([]int{c.errors, c.warnings, c.notes}), "%s", report)
			g.Expect(len(report.Message())).To(BeNumerically("<", 2000))

			unused, err := safety.Check(t.Context(), safety.Input{Changes: changes, Objects: objects{}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(unused.HasErrors()).To(BeFalse(), "%s", unused)
		})
	}
}

// Upgrades of real providers with objects from the templates of all providers.
var _ = DescribeTable(
	"A real upgrade",
	func(ctx SpecContext, provider, from, to string, errors ...string) {
		g := NewWithT(GinkgoT())
		folder := testproviders.Folder(GinkgoT())
		changes := upgrade(g, folder, provider, from, to)

		var live []*crd

		for _, c := range changes {
			// There is no webhook here. None is needed, since objects are created and read in one version.
			c.Live.Spec.Conversion = nil
			live = append(live, c.Live)
		}

		install(ctx, live...)
		DeferCleanup(func(ctx SpecContext) { remove(ctx, live) })

		accepted := 0
		for _, d := range live {
			accepted += createAll(ctx, templates(g, folder), d)
		}

		Expect(accepted).To(BeNumerically(">", 0))

		start := time.Now()
		report, err := safety.Check(ctx, safety.Input{Changes: changes, Objects: safety.ClusterObjects{Client: client}})
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("figures", fmt.Sprintf("%d CRDs with %d objects: %s", len(changes), accepted, time.Since(start)))

		var paths []string
		for _, f := range report.WithLevel(safety.Error) {
			paths = append(paths, f.Path)
		}

		Expect(paths).To(ConsistOf(errors), "%s", report)
	},
	func(provider, from, to string, _ ...string) string {
		return fmt.Sprintf("of %s from %s to %s breaks just what it should", provider, from, to)
	},
	Entry(nil, "cluster-api", "v1.9.11", "v1.12.11"),
	Entry(nil, "cluster-api", "v1.12.11", "v1.13.5"),
	Entry(nil, "control-plane-kubeadm", "v1.9.11", "v1.12.11"),
	// A key that is empty, as in templates with an unset ${AZURE_SSH_PUBLIC_KEY}, is not valid any
	// more: MachineDeployments with it could not be scaled up after the upgrade, since their
	// templates are cloned.
	Entry(
		nil,
		"bootstrap-kubeadm",
		"v1.9.11",
		"v1.12.11",
		"spec.users[*].sshAuthorizedKeys[*]",
		"spec.template.spec.users[*].sshAuthorizedKeys[*]",
	),
	Entry(nil, "infrastructure-docker", "v1.13.5", "v1.14.0"),
	Entry(nil, "infrastructure-aws", "v2.10.3", "v2.11.1"),
)

// released returns the CRDs of a release.
func released(g Gomega, folder, provider, version string) []*crd {
	files, err := filepath.Glob(filepath.Join(folder, provider, version, "*-components.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(1), "%s %s", provider, version)
	data, err := os.ReadFile(files[0])
	g.Expect(err).NotTo(HaveOccurred())
	crds, err := safety.Parse(data)
	g.Expect(err).NotTo(HaveOccurred())

	for _, d := range crds {
		d.Status.StoredVersions = []string{storageVersion(d)}
	}

	return crds
}

func storageVersion(d *crd) string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}

	return ""
}

var document = regexp.MustCompile(`(?m)^---$`)

// templates returns the objects of all templates of all releases, with any values for variables.
func templates(g Gomega, folder string) []*unstructured.Unstructured {
	files, err := filepath.Glob(filepath.Join(folder, "*", "*", "cluster*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())

	var all []*unstructured.Unstructured

	for _, file := range files {
		data, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		text, err := envsubst.Eval(string(data), func(name string) string {
			switch {
			case name == "KUBERNETES_VERSION":
				return "v1.34.0"
			case strings.HasSuffix(name, "_COUNT"), strings.HasSuffix(name, "_SIZE"):
				return "3"
			}

			return ""
		})
		g.Expect(err).NotTo(HaveOccurred(), file)

		for _, text := range document.Split(text, -1) {
			o := &unstructured.Unstructured{}
			if yaml.Unmarshal([]byte(text), &o.Object) == nil && o.GetKind() != "" {
				all = append(all, o)
			}
		}
	}

	return all
}

// createAll creates the objects of a CRD in its storage version and returns how many of them the API
// server accepts.
func createAll(ctx context.Context, all []*unstructured.Unstructured, d *crd) int {
	accepted := 0
	resource := samples

	resource.Group, resource.Version, resource.Resource = d.Spec.Group, storageVersion(d), d.Spec.Names.Plural
	for i, o := range all {
		if o.GetKind() != d.Spec.Names.Kind || o.GetAPIVersion() != resource.GroupVersion().String() {
			continue
		}

		o = o.DeepCopy()
		o.SetName(fmt.Sprintf("sample-%d", i))
		o.SetNamespace("default")

		if _, err := client.Resource(resource).Namespace("default").Create(ctx, o, metav1.CreateOptions{}); err == nil {
			accepted++
		}
	}

	return accepted
}
