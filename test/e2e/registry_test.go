package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/mirror"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/cosign"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/image"
)

const registryUser, registryPassword = "me", "password-of-the-registry"

// privateRegistry is a registry with its own certificate and a password, and a client for it.
type privateRegistry struct {
	*bed.Registry
	client *oci.Client
	// config and ca are paths of files for the operator's flags.
	config, ca string
}

func newPrivateRegistry(ctx context.Context, listen string) *privateRegistry {
	GinkgoHelper()

	dir := GinkgoT().TempDir()
	r, err := bed.RunRegistry(
		ctx,
		bed.RegistryOptions{Dir: dir, TLS: true, User: registryUser, Password: registryPassword, Listen: listen},
	)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(r.Stop)
	p := &privateRegistry{Registry: r, config: filepath.Join(dir, "config.json"), ca: filepath.Join(dir, "ca.crt")}
	p.client, err = oci.NewClient(
		transport.Options{CA: r.CA, Credentials: bed.Login(r.Address, registryUser, registryPassword)},
	)
	Expect(err).NotTo(HaveOccurred())

	login := base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + registryPassword))
	Expect(os.WriteFile(p.config, fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, r.Address, login), 0o600)).To(Succeed())
	Expect(os.WriteFile(p.ca, r.CA, 0o600)).To(Succeed())

	return p
}

// at returns a reference in the registry.
func (r *privateRegistry) at(path string) oci.Reference {
	GinkgoHelper()

	ref, err := oci.Parse(r.Address + "/" + path)
	Expect(err).NotTo(HaveOccurred())

	return ref
}

// flags returns flags that make an operator use the registry for charts and images.
func (r *privateRegistry) flags() []string {
	return append(r.access(),
		"--chart-repository=oci://"+r.Address+"/capi/charts", "--image-registry="+r.Address+"/capi")
}

// access returns flags that let an operator read the registry.
func (r *privateRegistry) access() []string {
	return []string{"--registry-config=" + r.config, "--registry-ca=" + r.ca}
}

// pushCharts pushes the charts of releases to where the operator looks for them.
func (r *privateRegistry) pushCharts(
	ctx context.Context,
	repository string,
	all ...harness.Wanted,
) map[string]*oci.Chart {
	GinkgoHelper()

	pushed := map[string]*oci.Chart{}

	for _, wanted := range all {
		release, err := harness.Load(ctx, repository, wanted)
		Expect(err).NotTo(HaveOccurred())
		made, err := chartgen.Build(release.Bundle)
		Expect(err).NotTo(HaveOccurred())
		c, err := image.PushChart(
			ctx,
			r.client,
			r.at("capi/charts/"+made.Metadata.Name+":"+oci.ChartTag(made.Metadata.Version)),
			made,
		)
		Expect(err).NotTo(HaveOccurred())

		pushed[wanted.Label] = c
	}

	return pushed
}

// pushFiles publishes a tiny provider's release like `oras push`.
func (r *privateRegistry) pushFiles(ctx context.Context, t tiny) oci.Reference {
	GinkgoHelper()

	var layers []image.Blob

	for name, text := range map[string]string{
		"metadata.yaml":                  t.metadata,
		"infrastructure-components.yaml": t.components,
	} {
		layer := image.NewBlob("application/vnd.test.file", []byte(text))
		layer.Descriptor.Annotations = map[string]string{ocispec.AnnotationTitle: name}
		layers = append(layers, layer)
	}

	ref := r.at("files/" + t.name + ":" + t.version)
	desc, err := image.PushArtifact(ctx, r.client, ref, "application/vnd.acme.config", layers...)
	Expect(err).NotTo(HaveOccurred())

	return ref.WithDigest(desc.Digest)
}

// moveTag makes a tag point to the same manifest as another reference of its repository.
func (r *privateRegistry) moveTag(ctx context.Context, tag string, to oci.Reference) {
	GinkgoHelper()

	desc, err := r.client.Resolve(ctx, to)
	Expect(err).NotTo(HaveOccurred())
	Expect(r.client.Repository(to).Tag(ctx, desc, tag)).To(Succeed())
}

// withMetadata returns a chart with changed metadata.
func withMetadata(c *chart.Chart, change func(*chart.Metadata)) *chart.Chart {
	GinkgoHelper()

	metadata := c.Metadata
	metadata.Annotations = maps.Clone(metadata.Annotations)
	change(&metadata)

	files := slices.DeleteFunc(
		slices.Concat(c.Files, c.CRDs),
		func(f chart.File) bool { return f.Name == chart.MetadataFile },
	)
	changed, err := chart.New(metadata, files)
	Expect(err).NotTo(HaveOccurred())

	return changed
}

// only returns a resource with nothing but a name and a version.
func only(t v1alpha2.ProviderType, namespace, name, version string) v1alpha2.Provider {
	p := t.New()
	p.SetNamespace(namespace)
	p.SetName(name)
	p.GetSpec().Version = version

	return p
}

// images returns the images of a namespace's Deployments.
func (w *world) images(ctx context.Context, namespace string) []string {
	GinkgoHelper()

	list := &appsv1.DeploymentList{}
	Expect(w.client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())

	var images []string

	for _, d := range list.Items {
		for _, c := range d.Spec.Template.Spec.Containers {
			images = append(images, c.Image)
		}
	}

	return images
}

var _ = Describe("A registry", Ordered, func() {
	var (
		w      *world
		r      *privateRegistry
		charts map[string]*oci.Chart
		// flags allow resources to name other repositories of the registry.
		flags []string
	)

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
		w.withoutCore(ctx)
		r = newPrivateRegistry(ctx, "")
		charts = r.pushCharts(
			ctx,
			samples,
			harness.Wanted{Label: "cluster-api"},
			harness.Wanted{Label: "infrastructure-docker", Version: "v1.0.0"},
		)

		host, _, err := net.SplitHostPort(r.Address)
		Expect(err).NotTo(HaveOccurred())

		flags = append(r.flags(), "--allowed-source-hosts="+host)
		w.restart(flags...)
		Expect(w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "capi"}})).To(Succeed())

		core := only(v1alpha2.CoreProviderType, "capi", "cluster-api", "v1.0.0")
		Expect(w.client.Create(ctx, core)).To(Succeed())
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))
		Expect(core.GetStatus().Chart.Digest).To(Equal(charts["cluster-api"].Digest))
	})

	It("provides charts and images for resources with only a name and a version", func(ctx SpecContext) {
		Expect(w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "docker"}})).To(Succeed())

		p := only(v1alpha2.InfrastructureProviderType, "docker", "docker", "v1.0.0")
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(p.GetStatus().Chart.Digest).To(Equal(charts["infrastructure-docker"].Digest))
		Expect(w.images(ctx, "docker")).To(HaveEach(HavePrefix(r.Address + "/capi/")))
	})

	It("is the only source, and a chart that it lacks is reported with its reference", func(ctx SpecContext) {
		Expect(w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lacking"}})).To(Succeed())

		p := only(v1alpha2.InfrastructureProviderType, "lacking", "aws", "v2.11.1")
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.VersionNotFoundReason,
			"there is no oci://"+r.Address+"/capi/charts/infrastructure-aws:2.11.1", "capstan mirror"))

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{
				URL: "https://github.com/kubernetes-sigs/cluster-api-provider-aws/releases/latest/infrastructure-components.yaml",
			}
		})
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.FetchConfigValidationErrorReason,
			"the source https://github.com/", "is not allowed"))
		nothingIsApplied(ctx, w, "lacking")
	})

	It("provides releases as artifacts, whose charts stay in the cluster", func(ctx SpecContext) {
		t := newTiny("files", "v1.0.0")
		r.pushFiles(ctx, t)
		r.pushFiles(ctx, newTiny("files", "v1.1.0"))
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		p := t.resource()
		p.Spec.Version = "~1.0.0"
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{OCI: r.Address + "/files/files"}
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		_, err := r.client.Tags(ctx, r.at("capi/charts/infrastructure-files"))
		Expect(transport.Is(err, transport.NotFound)).To(BeTrue(), "%v", err)
	})

	It("changes nothing when its tags move, until that is requested", func(ctx SpecContext) {
		t := newTiny("retagged", "v1.0.0")
		first := r.pushFiles(ctx, t)
		second := r.pushFiles(ctx, newTiny("retagged", "v1.0.1"))
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		p := t.resource()
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{OCI: r.Address + "/files/retagged"}
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), HaveField("Status.Chart.Source", first.String())))
		before := p.Status.Chart.Digest

		r.moveTag(ctx, "v1.0.0", second)
		w.restart(flags...)
		Consistently(w.read(ctx, p)).WithTimeout(quietPeriod).
			Should(And(beReady("v1.0.0"), HaveField("Status.Chart.Digest", before),
				HaveField("Status.Release.Revision", 1)))

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "accept"})
		})
		Eventually(w.read(ctx, p)).Should(And(
			beReady("v1.0.0"),
			HaveField("Status.Release.Revision", 2),
			HaveField("Status.Chart.Digest", Not(Equal(before))),
			HaveField("Status.Chart.Source", first.WithDigest(second.Digest).String()),
		))
		Expect(w.images(ctx, "retagged")).To(ConsistOf(HaveSuffix("/retagged:v1.0.1")))
	})

	It("provides charts for helm without the operator", func(ctx SpecContext) {
		t := newTiny("charted", "v1.1.0")
		made, err := chartgen.Build(&bundle.Bundle{
			Provider:   source.Provider(v1alpha2.InfrastructureProviderType, t.name),
			Version:    t.version,
			Components: []byte(t.components),
			Metadata:   []byte(t.metadata),
		})
		Expect(err).NotTo(HaveOccurred())
		_, err = image.PushChart(ctx, r.client, r.at("capi/charts/infrastructure-charted:1.1.0"), made)
		Expect(err).NotTo(HaveOccurred())

		const namespace = "without-operator"

		w.run(
			ctx, "helm", "install", "plain", "oci://"+r.Address+"/capi/charts/infrastructure-charted", "--version",
			"1.1.0", "-n", namespace, "--create-namespace", "--ca-file", r.ca, "--username", registryUser,
			"--password", registryPassword, "--set", "imageRegistry=mirror.example.com",
		)
		Expect(w.helm(ctx, "helm", "list", "-n", namespace)).To(
			ConsistOf(And(HaveField("Status", "deployed"), HaveField("AppVersion", "v1.1.0"))))
		Expect(w.images(ctx, namespace)).To(ConsistOf("mirror.example.com/charted:v1.1.0"))
	})

	It("provides a provider's image that contains its manifests", func(ctx SpecContext) {
		t := newTiny("manifests", "v1.0.0")
		ref := r.at("images/tiny:v1.0.0")
		desc, err := image.Push(ctx, r.client, ref, []string{"linux/amd64", "linux/arm64"}, image.Layer(
			image.Entry{
				Name:    "capi-manifests/metadata.yaml",
				Content: t.metadata,
			},
			image.Entry{Name: "capi-manifests/manifests.yaml", Content: t.components},
			image.Entry{Name: "capi-manifests/metadata.json", Content: `{"imageName":"registry.example.com/manifests:v1.0.0"}`},
		))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		p := t.resource()
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Image: ref.Name()}
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(w.images(ctx, "manifests")).To(ConsistOf(r.Address + "/capi/images/tiny@" + desc.Digest.String()))
	})

	It("provides no chart that is not a provider's", func(ctx SpecContext) {
		t := newTiny("other", "v1.0.0")
		made, err := chart.New(
			chart.Metadata{APIVersion: "v2", Name: "web", Version: "1.0.0", AppVersion: "v1.0.0"},
			[]chart.File{{Name: "templates/a.yaml", Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}")}},
		)
		Expect(err).NotTo(HaveOccurred())
		_, err = image.PushChart(ctx, r.client, r.at("files/web:1.0.0"), made)
		Expect(err).NotTo(HaveOccurred())

		p := t.resource()
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{OCI: "oci://" + r.Address + "/files/web"}

		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InvalidComponentsReason,
			"oci://"+r.Address+"/files/web:1.0.0@sha256:", ": is the Helm chart web, which was not built from a provider's "+
				"components; install it with helm, Flux or Argo CD"))
		Expect(w.helm(ctx, "helm", "list", "-n", t.name)).To(BeEmpty())
	})

	It("provides the content of a chart, of which no template is executed", func(ctx SpecContext) {
		t := newTiny("hooked", "v1.0.0")
		built, err := chartgen.Build(&bundle.Bundle{
			Provider:   source.Provider(v1alpha2.InfrastructureProviderType, t.name),
			Version:    t.version,
			Components: []byte(t.components),
			Metadata:   []byte(t.metadata),
		})
		Expect(err).NotTo(HaveOccurred())

		hook := "{apiVersion: v1, kind: ConfigMap, metadata: {name: migrate, annotations: {helm.sh/hook: pre-install}}}"
		hooked := *built
		hooked.Files = append(slices.Clone(built.Files), chart.File{Name: "templates/hook.yaml", Data: []byte(hook)})
		_, err = image.PushChart(ctx, r.client, r.at("files/hooked:1.0.0"), &hooked)
		Expect(err).NotTo(HaveOccurred())

		p := t.resource()
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{OCI: "oci://" + r.Address + "/files/hooked"}

		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(w.images(ctx, t.name)).To(ConsistOf(HaveSuffix("/hooked:v1.0.0")))
		Expect(w.helm(ctx, "helm", "list", "-n", t.name)).To(ConsistOf(HaveField("Status", "deployed")))
		Expect(w.run(ctx, "helm", "get", "all", "infrastructure-hooked", "-n", t.name)).NotTo(ContainSubstring("migrate"))
	})

	It("is trusted only with the digest and signature that a resource requires", func(ctx SpecContext) {
		key, err := cosign.NewKey()
		Expect(err).NotTo(HaveOccurred())

		t := newTiny("signed", "v1.0.0")
		pinned := r.pushFiles(ctx, t)
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(
			w.client.Create(
				ctx,
				&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: t.name, Name: "keys"},
					Data:       map[string][]byte{"cosign.pub": key.Public},
				},
			),
		).To(Succeed())
		p := t.resource()
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{
			OCI:    r.Address + "/files/signed",
			Digest: "sha256:" + strings.Repeat("0", 64),
			Verify: &v1alpha2.Verification{SecretRef: v1alpha2.LocalSecretReference{Name: "keys"}},
		}
		Expect(w.client.Create(ctx, p)).To(Succeed())

		untrusted := func(parts ...string) OmegaMatcher {
			return And(notBeInstalled(v1alpha2.UntrustedSourceReason, parts...), beStalled(v1alpha2.UntrustedSourceReason))
		}
		Eventually(w.read(ctx, p)).Should(untrusted("has the digest "+pinned.Digest.String(), "spec.fetchConfig.digest"))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().FetchConfig.Digest = pinned.Digest.String() })
		Eventually(w.read(ctx, p)).Should(untrusted("has no cosign signature"))
		nothingIsApplied(ctx, w, t.name)

		Expect(key.Tag(ctx, r.client, pinned, pinned.Digest, cosign.Payload(pinned.Digest))).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		By("using a mirror, which has the signature, too")

		items, err := mirror.Images(ctx, r.client, []string{r.at("files/signed:v1.0.0").Name()}, nil, 1)
		Expect(err).NotTo(HaveOccurred())

		target := &mirror.Registry{Client: r.client, Base: r.at("mirror")}
		Expect(mirror.Copy(ctx, items, target, mirror.Options{})).To(Succeed())
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().FetchConfig.OCI = r.Address + "/mirror/files/signed" })
		Eventually(w.read(ctx, p)).Should(
			And(
				beReady("v1.0.0"),
				HaveField("Status.Chart.Source", r.at("mirror/files/signed:v1.0.0").WithDigest(pinned.Digest).String()),
			),
		)
	})

	It(
		"may be down: installed providers stay, cached versions are available, and the rest is retried",
		func(ctx SpecContext) {
			t := newTiny("away", "v1.0.0")
			for _, version := range []string{"v1.0.0", "v1.1.0", "v1.2.0"} {
				r.pushFiles(ctx, newTiny("away", version))
			}

			Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
			p := t.resource()
			p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{OCI: r.Address + "/files/away"}
			Expect(w.client.Create(ctx, p)).To(Succeed())
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

			to := func(version string) {
				update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = version })
			}
			to("v1.1.0")
			Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
			to("v1.0.0")
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

			By("stopping the registry, and requesting a new look at the source")
			r.Stop()
			update(ctx, w, p, func(p v1alpha2.Provider) {
				p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"})
			})
			Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), HaveField("Status.LastHandledReconcileAt", "now")))

			By("upgrading to a version that was installed before")
			to("v1.1.0")
			Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))

			By("killing and restarting the operator")
			Expect(w.operator.Kill()).To(Succeed())
			w.start(flags...)
			to("v1.2.0")
			Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.ComponentsFetchErrorReason,
				"files/away:v1.2.0", "check that "+r.Address+" can be reached"))
			Expect(w.helm(ctx, "helm", "list", "-n", "away")).To(
				ConsistOf(And(HaveField("AppVersion", "v1.1.0"), HaveField("Status", "deployed"))))

			By("starting the registry")
			Expect(r.Start(ctx)).To(Succeed())
			Eventually(w.read(ctx, p)).Should(beReady("v1.2.0"))
		},
	)

	It("leaves no credential in logs, events and resources", func(ctx SpecContext) {
		log, err := os.ReadFile(w.log)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(log)).NotTo(ContainSubstring(registryPassword))
		Expect(string(log)).NotTo(
			ContainSubstring(base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + registryPassword))))
	})
})
