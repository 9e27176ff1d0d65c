package release_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness/suite"
)

const name = "infrastructure-sample" // of the releases

var (
	apiServer *bed.Bed
	client    kubernetes.Interface
	// reader is the engine of a process that only reads.
	reader *release.Engine
)

func TestRelease(t *testing.T) {
	suite.Suite{Name: "Release engine"}.Run(t)
}

var _ = BeforeSuite(func(SpecContext) {
	apiServer = bedtest.Start(GinkgoT(), bed.Options{Nodes: -1, WithoutCertManager: true})
	client = kubernetes.NewForConfigOrDie(apiServer.Config())
	reader = newEngine("reader")
}, NodeTimeout(15*time.Minute))

// newNamespace creates a namespace for one test.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "release-"}}
	created, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())

	return created.Name
}

// newEngine returns the engine of a process with that name.
func newEngine(process string, changes ...func(*rest.Config)) *release.Engine {
	GinkgoHelper()

	config := apiServer.Config()
	config.UserAgent = process

	for _, change := range changes {
		change(config)
	}

	return engineFor(config, release.Options{})
}

// engineFor returns an engine for a configuration.
func engineFor(config *rest.Config, options release.Options) *release.Engine {
	GinkgoHelper()

	httpClient, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())

	kinds, err := apply.NewKinds(config, httpClient)
	Expect(err).NotTo(HaveOccurred())

	connection, err := apply.Connect(config, httpClient, kinds)
	Expect(err).NotTo(HaveOccurred())

	return release.NewEngine(connection, options)
}

// newRefusedEngine returns an engine whose requests with certain methods for a resource are refused.
func newRefusedEngine(resource string, methods ...string) *release.Engine {
	return newEngine("one", func(c *rest.Config) {
		c.Wrap(func(rt http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if slices.Contains(methods, r.Method) && strings.Contains(r.URL.Path, "/"+resource) {
					r.Header.Set("Impersonate-User", "powerless")
				}

				return rt.RoundTrip(r)
			})
		})
	})
}

// newImpatientEngine returns an engine that waits for other programs for a millisecond.
func newImpatientEngine() *release.Engine {
	GinkgoHelper()

	return engineFor(apiServer.Config(), release.Options{LockTimeout: time.Millisecond})
}

// releaseIn returns the name of the release under test in a namespace.
func releaseIn(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// chartOf returns a chart of templates with one object each.
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

// newSpec returns the desired state of a release of a chart with values.
func newSpec(namespace string, c *chart.Chart, values map[string]any) release.Spec {
	GinkgoHelper()

	archive, err := c.Archive()
	Expect(err).NotTo(HaveOccurred())

	// Charts by hand have no content ID.
	identified := *c
	identified.Metadata.Annotations = map[string]string{chartgen.AnnotationContentID: chart.Digest(archive)}
	maps.Copy(identified.Metadata.Annotations, c.Metadata.Annotations)

	return release.Spec{
		Release: releaseIn(namespace), Chart: &identified, ChartDigest: chart.Digest(archive), Values: values,
	}
}

// specOf returns the desired state of a release of templates without values.
func specOf(namespace, version string, templates ...string) release.Spec {
	GinkgoHelper()
	return newSpec(namespace, chartOf(version, templates...), nil)
}

// confirmed returns a revision that is known by the digest of its record.
func confirmed(namespace string, number int) state.Revision {
	GinkgoHelper()

	revision := state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: number}}
	revision.Digest = digestOf(context.Background(), releaseIn(namespace), revision)

	return revision
}

// digestOf returns the digest of a record, or that of none if it cannot be read.
func digestOf(ctx context.Context, key types.NamespacedName, revision state.Revision) string {
	GinkgoHelper()

	record, err := reader.Read(ctx, key, revision)
	if err != nil {
		return "v1:unreadable"
	}

	return record.Digest
}

// accepted returns the history of a release of which all records are known, with what the status knows of it.
func accepted(ctx context.Context, e *release.Engine, key types.NamespacedName) state.History {
	GinkgoHelper()

	history, err := e.Observe(ctx, key)
	Expect(err).NotTo(HaveOccurred())

	for i := range history.Revisions {
		revision := &history.Revisions[i]

		if known, exists := state.Known(statusOf(key), revision.Number); exists && revision.Ours() {
			revision.Recall(known)
		}

		revision.Digest = digestOf(ctx, key, *revision)
	}

	return history
}

// observe returns the state of a release, compared with its desired state.
func observe(ctx context.Context, e *release.Engine, spec release.Spec) state.Observed {
	GinkgoHelper()

	digest, err := spec.Digest()
	Expect(err).NotTo(HaveOccurred())

	return e.Determine(accepted(ctx, e, spec.Release), digest)
}

// applySpec applies the desired state of a release, whatever state it is in.
func applySpec(ctx context.Context, e *release.Engine, spec release.Spec) (release.Result, error) {
	GinkgoHelper()
	return applyObserved(ctx, e, spec, observe(ctx, e, spec))
}

// applyObserved applies the desired state of a release that is in an observed state.
func applyObserved(
	ctx context.Context, e *release.Engine, spec release.Spec, observed state.Observed,
) (release.Result, error) {
	prepared, err := e.Prepare(ctx, spec, memoryOf(ctx, e, spec.Release), observed, false)
	if err != nil {
		return release.Result{}, err
	}

	result, err := prepared.Apply(ctx, "")
	note(e, spec.Release, result)

	return result, err
}

func mustApply(ctx context.Context, e *release.Engine, spec release.Spec) release.Result {
	GinkgoHelper()

	result, err := applySpec(ctx, e, spec)
	Expect(err).NotTo(HaveOccurred())
	Expect(result.Status).To(Equal(v1alpha2.RevisionDeployed))

	return result
}

// history returns number and status of the revisions, oldest first.
func history(ctx context.Context, namespace string) []string {
	GinkgoHelper()

	history, err := reader.Observe(ctx, releaseIn(namespace))
	Expect(err).NotTo(HaveOccurred())

	var all []string
	for _, r := range slices.Backward(history.Revisions) {
		all = append(all, fmt.Sprintf("%d %s", r.Number, r.Status))
	}

	return all
}

// run runs a program of the bed and returns its output.
func run(ctx context.Context, program string, args ...string) string {
	GinkgoHelper()

	out, err := command(ctx, program, args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s %s: %s", program, strings.Join(args, " "), out)

	return string(out)
}

func command(ctx context.Context, program string, args ...string) *exec.Cmd {
	return apiServer.Command(ctx, program, args...)
}

// kubectlApply applies YAML.
func kubectlApply(ctx context.Context, namespace, yaml string) {
	GinkgoHelper()

	cmd := command(ctx, "kubectl", "apply", "-n", namespace, "-f", "-")
	cmd.Stdin = strings.NewReader(yaml)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl apply: %s", out)
}

// establishCRD creates a CRD and waits until its kind can be used.
func establishCRD(ctx context.Context, namespace, plural string) {
	GinkgoHelper()
	kubectlApply(ctx, namespace, crd(plural))
	run(ctx, "kubectl", "wait", "--for=condition=Established", "crd/"+plural+".release.test")
}

// configMaps returns the names of the namespace's ConfigMaps, without the one of every namespace.
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

func getConfigMap(ctx context.Context, namespace, name string) *corev1.ConfigMap {
	GinkgoHelper()

	cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())

	return cm
}

func getDeployment(ctx context.Context, namespace, name string) *appsv1.Deployment {
	GinkgoHelper()

	d, err := client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())

	return d
}

// expectError expects an error of a type and returns it.
func expectError[E error](err error) E {
	GinkgoHelper()

	var target E
	Expect(errors.As(err, &target)).To(BeTrue(), "%v", err)

	return target
}

func secretOf(revision int) string { return fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision) }

func beNotFound() OmegaMatcher { return WithTransform(apierrors.IsNotFound, BeTrue()) }
