// Package flux tests the charts, the operator's own and those of providers, with Flux. Its
// source-controller and helm-controller run next to a bed and get the charts from a registry, as
// the documentation shows.
package flux

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/harness/suite"
	"github.com/capstan-project/capstan/test/testproviders"
)

const (
	// root is the module's root.
	root = "../.."
	// namespace is the namespace of Flux and its objects.
	namespace = "flux-system"
	// fluxUser is the user name of Flux in the bed's audit log.
	fluxUser = "flux"
)

var samples = filepath.Join(root, testproviders.Samples)

// Shared by all scenarios: a control plane with Flux, and a registry.
var (
	cluster  *bed.Bed
	admin    client.Client
	registry string
)

func TestFlux(t *testing.T) {
	// Flux takes many minutes to build.
	suite.Suite{Name: "Flux", Target: "e2e-flux", Variable: "E2E_FLUX"}.Run(t)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	set, err := tools.Find()
	Expect(err).NotTo(HaveOccurred())
	Expect(set.WithFlux().Build(ctx, GinkgoWriter)).To(Succeed())

	cluster = bedtest.Start(GinkgoT(), bed.Options{})

	admin, err = harness.NewClient(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	registry, err = cluster.StartRegistry(ctx)
	Expect(err).NotTo(HaveOccurred())

	for _, definitions := range []string{set.Manifests(tools.FluxSourceCRDs), set.Manifests(tools.FluxHelmCRDs)} {
		run(ctx, "kubectl", "apply", "--server-side", "-f", definitions)
		run(ctx, "kubectl", "wait", "--for", "condition=Established", "-f", definitions)
	}

	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())

	artifacts := bedtest.FreeAddress(GinkgoT())
	startController(
		tools.SourceController,
		"--storage-path="+GinkgoT().TempDir(),
		"--storage-addr="+artifacts,
		"--storage-adv-addr="+artifacts,
	)
	startController(tools.HelmController)
})

// startController runs a program of Flux until the suite ends, and logs what it prints.
func startController(program string, flags ...string) {
	GinkgoHelper()

	kubeconfig, err := cluster.KubeconfigFor(fluxUser)
	Expect(err).NotTo(HaveOccurred())

	dir := GinkgoT().TempDir()
	cmd := exec.Command(cluster.Binary(program), append(flags, "--metrics-addr=0", "--health-addr=0")...)
	cmd.Env = []string{
		"KUBECONFIG=" + kubeconfig,
		"RUNTIME_NAMESPACE=" + namespace,
		"HOME=" + dir,
		"TMPDIR=" + dir,
		"PATH=" + os.Getenv("PATH"),
	}
	bedtest.Launch(GinkgoT(), cluster, cmd)
}

// run runs a program of the bed, as a user would.
func run(ctx context.Context, name string, args ...string) {
	GinkgoHelper()
	bedtest.Output(GinkgoT(), cluster.Command(ctx, name, args...))
}

// apply creates or updates objects.
func apply(ctx context.Context, objects string) {
	GinkgoHelper()
	bedtest.Apply(ctx, GinkgoT(), cluster, objects, "--server-side", "--force-conflicts")
}

// documented returns the first resources below a heading of a page in docs, with the suite's registry instead of the
// documented ones, and with the given replacements.
func documented(page, heading string, replacements ...string) string {
	GinkgoHelper()

	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	Expect(err).NotTo(HaveOccurred())

	_, section, _ := strings.Cut(string(text), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, rest, _ := strings.Cut(section, "```yaml\n")
	block, _, found := strings.Cut(rest, "```")
	Expect(found).To(BeTrue(), "docs/%s has no YAML below the heading %s", page, heading)

	for _, address := range []string{"ghcr.io/capstan-project", "registry.example.com/capi"} {
		replacements = append(replacements,
			"  url: oci://"+address+"/", "  insecure: true\n  url: oci://"+registry+"/")
	}

	replaced := strings.NewReplacer(replacements...).Replace(block)
	Expect(replaced).To(ContainSubstring(registry))

	return replaced
}
