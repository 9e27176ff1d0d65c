package release_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

const name = "infrastructure-sample" // of the releases

var (
	cluster *bed.Bed
	client  kubernetes.Interface
)

func TestRelease(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "Release engine")
}

var _ = BeforeSuite(func(SpecContext) {
	cluster = bedtest.StartAPIServer(GinkgoT())
	client = kubernetes.NewForConfigOrDie(cluster.Config())
}, NodeTimeout(15*time.Minute))

// newNamespace makes a namespace for one test.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()

	ns, err := client.CoreV1().
		Namespaces().
		Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "release-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())

	return ns.Name
}

// newEngine makes an engine for a process of that name.
func newEngine(holder string, changes ...func(*rest.Config)) *release.Engine {
	GinkgoHelper()

	config := cluster.Config()
	for _, change := range changes {
		change(config)
	}

	engine, err := release.NewEngine(config, release.Options{Holder: holder})
	Expect(err).NotTo(HaveOccurred())

	return engine
}

// newImpatientEngine makes an engine that gives other programs next to no time.
func newImpatientEngine(holder string) *release.Engine {
	GinkgoHelper()

	engine, err := release.NewEngine(cluster.Config(), release.Options{Holder: holder, ForeignGrace: time.Millisecond})
	Expect(err).NotTo(HaveOccurred())

	return engine
}

// chartOf makes a chart of templates, one object each.
func chartOf(version string, templates ...string) *chart.Chart {
	GinkgoHelper()

	var files []chart.File
	for i, t := range templates {
		files = append(files, chart.File{Name: fmt.Sprintf("%s%02d.yaml", chart.TemplatesDir, i), Data: []byte(t)})
	}

	c, err := chart.New(chart.Metadata{APIVersion: "v2", Name: name, Version: version, AppVersion: "v" + version}, files)
	Expect(err).NotTo(HaveOccurred())

	return c
}

// desired is a release of a chart with values.
func desired(namespace string, c *chart.Chart, values map[string]any) release.Desired {
	GinkgoHelper()

	archive, err := c.Archive()
	Expect(err).NotTo(HaveOccurred())

	return release.Desired{Namespace: namespace, Name: name, Chart: c, ChartDigest: chart.Digest(archive), Values: values}
}

// stateOf observes a release and decides.
func stateOf(ctx context.Context, e *release.Engine, d release.Desired) release.State {
	GinkgoHelper()

	o, err := e.Observe(ctx, d.Namespace, d.Name)
	Expect(err).NotTo(HaveOccurred())
	digest, err := e.Digest(d)
	Expect(err).NotTo(HaveOccurred())

	return e.Decide(o, digest)
}

// apply brings a release to what is desired, whatever state it is in.
func apply(ctx context.Context, e *release.Engine, d release.Desired) (release.Result, error) {
	GinkgoHelper()
	return e.Apply(ctx, d, stateOf(ctx, e, d))
}

func mustApply(ctx context.Context, e *release.Engine, d release.Desired) release.Result {
	GinkgoHelper()

	result, err := apply(ctx, e, d)
	Expect(err).NotTo(HaveOccurred())
	Expect(result.Status).To(Equal(release.StatusDeployed))

	return result
}

// history is the statuses of the revisions, oldest first.
func history(ctx context.Context, namespace string) []string {
	GinkgoHelper()

	o, err := newEngine("reader").Observe(ctx, namespace, name)
	Expect(err).NotTo(HaveOccurred())

	var all []string
	for _, r := range slices.Backward(o.Revisions) {
		all = append(all, fmt.Sprintf("%d %s", r.Number, r.Status))
	}

	return all
}

// run runs a program of the bed.
func run(ctx context.Context, program string, args ...string) string {
	GinkgoHelper()

	out, err := command(ctx, program, args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s %s: %s", program, strings.Join(args, " "), out)

	return string(out)
}

func command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, cluster.Binary(program), args...)
	cmd.Env = append(cmd.Environ(), "KUBECONFIG="+cluster.Kubeconfig())

	return cmd
}

// kubectlApply applies YAML.
func kubectlApply(ctx context.Context, namespace, yaml string) {
	GinkgoHelper()

	cmd := command(ctx, "kubectl", "apply", "-n", namespace, "-f", "-")
	cmd.Stdin = strings.NewReader(yaml)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl apply: %s", out)
}

// configMaps are the names of the namespace's ConfigMaps, without the one that every namespace has.
func configMaps(ctx context.Context, namespace string) []string {
	GinkgoHelper()

	list, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())

	var names []string

	for _, cm := range list.Items {
		if cm.Name != "kube-root-ca.crt" {
			names = append(names, cm.Name)
		}
	}

	return names
}

func secretOf(revision int) string { return fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision) }

func beGone() OmegaMatcher { return WithTransform(apierrors.IsNotFound, BeTrue()) }
