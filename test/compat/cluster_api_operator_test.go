package compat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/fakesource"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/image"
)

var _ = Describe("Resources of cluster-api-operator", Ordered, ContinueOnFailure, func() {
	var s *site

	BeforeAll(func(ctx SpecContext) {
		s = newSite(ctx)
		s.configure()
		s.start()
		DeferCleanup(func() { s.stop() })
	})

	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			AddReportEntry("providers", s.kubectl(ctx, "get", "capstan", "--all-namespaces", "--output=wide"))

			log, err := os.ReadFile(s.log())
			Expect(err).NotTo(HaveOccurred())

			lines := strings.Split(string(log), "\n")
			AddReportEntry("operator log", strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
	})

	describeBeforeCore(&s)
	describeFields(&s)

	describePreflight(&s)
	describeMinimal(&s)
	describeAirGapped(&s)
	describeLargeReleases(&s)
	describeChanges(&s)
	describeExamples(&s)

	describeCore(&s)
})

// site is a cluster of a user of cluster-api-operator: a control plane, a server with the paths of GitHub, and a
// registry. Capstan runs there with the flags that correspond to those of cluster-api-operator.
type site struct {
	client.Client
	bed      *bed.Bed
	releases *fakesource.Server
	registry string // host:port, over plain HTTP
	operator *harness.Operator
	config   string // the file of the operator's configuration
}

// newSite starts a site without an operator, for the container of specs whose BeforeAll calls it.
func newSite(ctx context.Context) *site {
	GinkgoHelper()

	s := &site{bed: bedtest.Start(GinkgoT(), bed.Options{CRDs: harness.OwnCRDs()}), releases: &fakesource.Server{}}

	Expect(s.releases.Start()).To(Succeed())
	DeferCleanup(func() { Expect(s.releases.Stop()).To(Succeed()) })

	var err error

	s.registry, err = s.bed.StartRegistry(ctx)
	Expect(err).NotTo(HaveOccurred())

	s.Client, err = harness.PrepareForTest(ctx, s.bed.Config())
	Expect(err).NotTo(HaveOccurred())

	return s
}

// listed are the providers that cluster-api-operator knows without a source, and that the specs use in that way.
var listed = map[string]string{
	"cluster-api":           "cluster-api",
	"bootstrap-kubeadm":     "bootstrap",
	"control-plane-kubeadm": "controlplane",
	"infrastructure-docker": "docker",
	"ipam-in-cluster":       "incluster",
	"addon-helm":            "helm",
}

// configure publishes the listed providers in versions v1.0.0 and v1.1.0, and writes the operator's configuration.
func (s *site) configure() {
	GinkgoHelper()

	config := &strings.Builder{}
	config.WriteString("providers:\n")

	for label, object := range listed {
		kind, name := v1alpha2.ParseLabel(label)
		url := s.publish(kind, name, object, "v1.0.0", "v1.1.0")
		fmt.Fprintf(config, "- {name: %s, type: %s, url: %q}\n", name, kind, url)
	}

	s.config = filepath.Join(GinkgoT().TempDir(), "clusterctl.yaml")
	Expect(os.WriteFile(s.config, []byte(config.String()), 0o600)).To(Succeed())
}

// start starts the operator, with additional flags, until another one is started.
func (s *site) start(flags ...string) {
	GinkgoHelper()

	s.stop()

	var err error

	s.operator, err = harness.StartOperator(s.bed, operatorProgram, s.log(),
		append(flags, "--config="+s.config, "--watch-configsecret", "--watch-configmap")...)
	Expect(err).NotTo(HaveOccurred())
}

// stop stops the operator, if there is one.
func (s *site) stop() {
	GinkgoHelper()

	if s.operator != nil {
		Expect(s.operator.Stop()).To(Succeed())
	}
}

// log returns the file with the operator's log.
func (s *site) log() string { return filepath.Join(s.bed.Dir(), "operator.log") }

// publish publishes releases of a small provider with GitHub's paths, and returns the URL of the newest. Its
// objects have the given name.
func (s *site) publish(kind v1alpha2.ProviderType, name, object string, versions ...string) string {
	for _, version := range versions {
		release := harness.Small(kind, client.ObjectKey{Name: name}, object, version)
		s.releases.Publish("example/"+release.Bundle.Provider.Label, version, map[string][]byte{
			"metadata.yaml": release.Bundle.Metadata, kind.ComponentsFile(): release.Bundle.Components,
		})
	}

	return fmt.Sprintf("%s/example/%s/releases/latest/%s", s.releases.URL(), kind.Label(name), kind.ComponentsFile())
}

// push pushes a release to a repository of the registry, in the layout that cluster-api-operator documents.
func (s *site) push(ctx context.Context, repository string, release *harness.Release) {
	GinkgoHelper()

	c, err := oci.NewClient(transport.Options{})
	Expect(err).NotTo(HaveOccurred())
	ref, err := oci.Parse("http://" + s.registry + "/" + repository + ":" + release.Bundle.Version)
	Expect(err).NotTo(HaveOccurred())

	file := func(name string, content []byte) image.Blob {
		layer := image.NewBlob("application/vnd.test.file", content)
		layer.Descriptor.Annotations = map[string]string{ocispec.AnnotationTitle: name}

		return layer
	}

	_, err = image.PushArtifact(ctx, c, ref, "application/vnd.acme.config",
		file("metadata.yaml", release.Bundle.Metadata),
		file(release.Type.ComponentsFile(), release.Bundle.Components))
	Expect(err).NotTo(HaveOccurred())
}

// create creates objects, and the namespaces of those that have one.
func (s *site) create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()

	for _, o := range objects {
		if o.GetNamespace() != "" {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.GetNamespace()}}
			Expect(client.IgnoreAlreadyExists(s.Create(ctx, namespace))).To(Succeed())
		}

		Expect(s.Create(ctx, o)).To(Succeed())
	}
}

// change changes an object, again if another client was faster.
func change[T client.Object](ctx context.Context, s *site, o T, change func(T)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(s.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		change(o)
		g.Expect(s.Update(ctx, o)).To(Succeed())
	}).Should(Succeed())
}

// remove deletes a resource, and waits until it and the objects of its provider are gone.
func (s *site) remove(ctx context.Context, p v1alpha2.Provider) {
	GinkgoHelper()
	Expect(s.Delete(ctx, p)).To(Succeed())
	Eventually(func() bool {
		return apierrors.IsNotFound(s.Get(ctx, client.ObjectKeyFromObject(p), p))
	}).Should(BeTrue())

	deployments := &appsv1.DeploymentList{}
	Expect(s.List(ctx, deployments, client.InNamespace(p.GetNamespace()),
		client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(p)})).To(Succeed())
	Expect(deployments.Items).To(BeEmpty())
}

// kubectl runs kubectl as a user would, and returns what it prints.
func (s *site) kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()

	out, err := s.bed.Command(ctx, "kubectl", args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), out)

	return string(out)
}

// minimal returns a resource with only a name and a version.
func (s *site) minimal(kind v1alpha2.ProviderType, namespace, name string) v1alpha2.Provider {
	p := kind.New()
	p.SetNamespace(namespace)
	p.SetName(name)
	p.GetSpec().Version = "v1.0.0"

	return p
}

// current returns a function for Eventually that reads the current resource.
func (s *site) current(ctx context.Context, p v1alpha2.Provider) func(Gomega) v1alpha2.Provider {
	return func(g Gomega) v1alpha2.Provider {
		g.Expect(s.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		return p
	}
}

// manager returns a function for Eventually that reads the Deployment of a small provider.
func (s *site) manager(ctx context.Context, namespace, object string) func(Gomega) *appsv1.Deployment {
	return func(g Gomega) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		g.Expect(s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: object + "-controller-manager"}, d)).To(Succeed())

		return d
	}
}

// quietPeriod is how long specs check that nothing happens.
const quietPeriod = time.Second
