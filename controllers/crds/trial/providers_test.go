package trial_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drone/envsubst/v2"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/controllers/crds/trial"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// upgrade returns the changes between the CRDs of two releases.
func upgrade(g Gomega, folder, provider, from, to string) []trial.Change {
	var changes []trial.Change

	desired := released(g, folder, provider, to)
	for _, d := range released(g, folder, provider, from) {
		if i := slices.IndexFunc(desired, func(new *crd) bool { return new.Name == d.Name }); i >= 0 {
			changes = append(changes, trial.Change{Live: d, Desired: desired[i]})
		}
	}

	return changes
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

		var findings []trial.Finding

		for _, c := range changes {
			found, err := trial.Run(ctx, c, trial.ClusterObjects{Client: client})
			Expect(err).NotTo(HaveOccurred())

			findings = append(findings, found...)
		}

		AddReportEntry("figures", fmt.Sprintf("%d CRDs with %d objects: %s", len(changes), accepted, time.Since(start)))

		var paths []string
		for _, f := range findings {
			paths = append(paths, f.Path)
		}

		Expect(paths).To(ConsistOf(errors), trial.NewReport(findings, nil).Message())
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
	crds, err := harness.CRDs(data)
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
