package charts

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/image"
)

// runMirror runs `capstan mirror` with arguments.
func runMirror(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()

	return clitest.Run(t.Context(), NewMirrorCommand, args...)
}

var imageLine = regexp.MustCompile(`image: \S+`)

// publishedProvider returns a folder with a provider whose image is in a public registry, that
// registry, a private one, and flags to access both.
func publishedProvider(t *testing.T) (folder, image string, public, private *bed.Registry, access []string) {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	auths, authorities := []string{}, []byte{}
	run := func() *bed.Registry {
		r, err := bed.RunRegistry(
			t.Context(),
			bed.RegistryOptions{Dir: t.TempDir(), TLS: true, User: "me", Password: registryPassword},
		)
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(r.Stop)
		auths = append(
			auths,
			fmt.Sprintf(`%q:{"auth":%q}`, r.Address, base64.StdEncoding.EncodeToString([]byte("me:"+registryPassword))),
		)
		authorities = append(authorities, r.CA...)

		return r
	}
	public, private = run(), run()
	config, ca := filepath.Join(dir, "config.json"), filepath.Join(dir, "ca.crt")
	g.Expect(os.WriteFile(config, []byte(`{"auths":{`+strings.Join(auths, ",")+`}}`), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(ca, authorities, 0o600)).To(Succeed())

	image = public.Address + "/capi/controller:v1.0.0"
	pushTestImage(t, public, image)

	folder = filepath.Join(dir, "providers")
	release := filepath.Join(folder, "infrastructure-docker", "v1.0.0")
	g.Expect(os.MkdirAll(release, 0o755)).To(Succeed())

	for _, name := range []string{"metadata.yaml", "infrastructure-components.yaml"} {
		data, err := os.ReadFile(filepath.Join("../../../../test/data/providers/infrastructure-docker/v1.0.0", name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(release, name), imageLine.ReplaceAll(data, []byte("image: "+image)), 0o600)).
			To(Succeed())
	}

	return folder, image, public, private, []string{"--registry-ca", ca, "--registry-config", config}
}

func pushTestImage(t *testing.T, r *bed.Registry, name string) {
	t.Helper()
	g := NewWithT(t)
	ref, err := oci.ParseImage(name)
	g.Expect(err).NotTo(HaveOccurred())

	c := registryClient(t, r)
	_, err = image.Push(t.Context(), c, ref, []string{"linux/amd64", "linux/arm64"}, image.Random(1<<20, 1))
	g.Expect(err).NotTo(HaveOccurred())
}

func registryClient(t *testing.T, r *bed.Registry) *oci.Client {
	t.Helper()

	c, err := oci.NewClient(transport.Options{
		CA: r.CA, Credentials: bed.Login(r.Address, "me", registryPassword),
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return c
}

func TestMirrorProviders(t *testing.T) {
	g := NewWithT(t)
	folder, image, _, registry, access := publishedProvider(t)
	run := func(args ...string) (string, string) {
		t.Helper()
		out, log, err := runMirror(t, append(args, access...)...)
		g.Expect(err).NotTo(HaveOccurred())

		return out, log
	}
	archive := filepath.Join(t.TempDir(), "mirror.tar")
	resources := filepath.Join(t.TempDir(), "providers.yaml")
	g.Expect(os.WriteFile(resources, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n---\n"+
		"apiVersion: operator.cluster.x-k8s.io/v1alpha2\nkind: InfrastructureProvider\n"+
		"metadata: {name: docker}\nspec: {version: v1.0.0}\n"), 0o600)).
		To(Succeed())

	out, _ := run("--source", folder, "--filename", resources, "--dry-run")
	g.Expect(out).
		To(And(
			MatchRegexp(`KiB\s+charts/infrastructure-docker:1\.0\.0\n`),
			MatchRegexp(`1\.0 MiB\s+`+regexp.QuoteMeta(image)),
			ContainSubstring("in total"),
		))

	out, log := run("infrastructure-docker:v1.0.0", "--source", folder, "--to", archive)
	g.Expect(out).To(And(ContainSubstring("1 chart and 1 image"), ContainSubstring("capstan mirror --archive "+archive)))
	g.Expect(log).To(And(MatchRegexp(`copied \s+1\.0 MiB  `+regexp.QuoteMeta(image)), Not(ContainSubstring("\x1b"))))

	to := "oci://" + registry.Address + "/mirror"
	out, _ = run("--archive", archive, "--to", to)
	g.Expect(out).To(ContainSubstring(
		"  capstan init --chart-repository " + to + "/charts --image-registry " + registry.Address + "/mirror\n"))
	_, log = run("--archive", archive, "--to", to)
	g.Expect(log).
		To(And(ContainSubstring("present"), ContainSubstring("0.0 KiB copied"), Not(ContainSubstring("copied  "))))

	// The mirror has what the operator needs: the chart in the chart repository, and the image in the
	// registry of the chart's value imageRegistry.
	c := registryClient(t, registry)
	ref, err := oci.Parse(registry.Address + "/mirror/charts/infrastructure-docker:1.0.0")
	g.Expect(err).NotTo(HaveOccurred())
	pulled, err := c.PullChart(t.Context(), ref)
	g.Expect(err).NotTo(HaveOccurred())

	manifest, err := render.Manifest(pulled.Chart, "default",
		map[string]any{"imageRegistry": registry.Address + "/mirror"})
	g.Expect(err).NotTo(HaveOccurred())

	mirrored := registry.Address + "/mirror/capi/controller:v1.0.0"
	g.Expect(manifest).To(ContainSubstring("image: " + mirrored + "\n"))

	ref, err = oci.ParseImage(mirrored)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.Resolve(t.Context(), ref)
	g.Expect(err).NotTo(HaveOccurred())
}

// TestMirrorPrintsFlagsThatFit: only for what the mirror contains, and all that it needs, for init and for Helm.
func TestMirrorPrintsFlagsThatFit(t *testing.T) {
	g := NewWithT(t)
	folder, image, _, registry, access := publishedProvider(t)
	to := "oci://" + registry.Address + "/mirror"
	run := func(args ...string) string {
		out, _, err := runMirror(t, append(args, append(access, "--to", to)...)...)
		g.Expect(err).NotTo(HaveOccurred())

		_, values, _ := strings.Cut(out, "--reset-then-reuse-values")
		values, _, _ = strings.Cut(values, "\n")
		flags := strings.NewReplacer("--set flags.", "--", "=", " ").Replace(values)
		g.Expect(out).To(ContainSubstring("  capstan init" + flags + "\n"))

		return flags
	}

	charts, images := " --chart-repository "+to+"/charts", " --image-registry "+registry.Address+"/mirror"
	g.Expect(run("infrastructure-docker", "--source", folder, "--charts-only")).To(Equal(charts))
	g.Expect(run("infrastructure-docker", "--source", folder)).To(Equal(charts + images))
	g.Expect(run("--image", image)).To(Equal(images))
}

// TestMirrorImageWithoutTLS: what the message about a registry without TLS says to write can be written.
func TestMirrorImageWithoutTLS(t *testing.T) {
	g := NewWithT(t)
	registry, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Dir: t.TempDir()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(registry.Stop)

	name := registry.Address + "/app:v1"
	ref, err := oci.Parse("http://" + name)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = image.Push(t.Context(), registryClient(t, registry), ref, nil, image.Random(1<<10, 1))
	g.Expect(err).NotTo(HaveOccurred())

	_, _, err = runMirror(t, "--image", name, "--dry-run")
	g.Expect(err).To(MatchError(HaveSuffix("does not use TLS; if that is intended, write http:// in front of it")))

	out, _, err := runMirror(t, "--image", "http://"+name, "--dry-run")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring(" " + name))
}

// TestMirrorFailure: a cause that concerns several items is printed once, with their names.
func TestMirrorFailure(t *testing.T) {
	g := NewWithT(t)

	_, log, err := runMirror(t, "infrastructure-docker", "cluster-api", "--source", sampleProviders, "--charts-only",
		"--to", "http://127.0.0.1:1/mirror")
	g.Expect(err).To(MatchError(MatchRegexp(`^mirror charts/infrastructure-docker:\S+, charts/cluster-api:\S+: dial tcp ` +
		`127.0.0.1:1: connect: connection refused; check that 127.0.0.1:1 can be reached from here\n` +
		`run the same command again to continue$`)))
	g.Expect(log).To(MatchRegexp(`failed +[0-9.]+ KiB  charts/cluster-api:`))
}

func TestMirrorErrors(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.yaml")
	NewWithT(t).Expect(os.WriteFile(empty, []byte("kind: Namespace\napiVersion: v1\n"), 0o600)).To(Succeed())

	for name, test := range map[string]struct {
		args    []string
		message string
	}{
		"no target":      {[]string{"infrastructure-aws"}, "--to is missing"},
		"nothing":        {[]string{"--to", filepath.Join(dir, "a.tar")}, "there is nothing to copy"},
		"a target's tag": {[]string{"infrastructure-aws", "--to", "oci://example.com/a:v1"}, "give the repository alone"},
		"an unknown folder": {
			[]string{"infrastructure-none", "--source", sampleProviders, "--to", filepath.Join(dir, "a.tar")},
			"infrastructure-none",
		},
		"an unknown name": {
			[]string{"infrastructure-none", "--config", empty, "--to", filepath.Join(dir, "a.tar")},
			"infrastructure-none",
		},
		"another version": {
			[]string{"infrastructure-aws:v9.9.9", "--source", sampleProviders, "--to", filepath.Join(dir, "a.tar")},
			"version v9.9.9 is not available",
		},
		"no resources": {
			[]string{"--filename", empty, "--to", filepath.Join(dir, "a.tar")},
			"contains no provider resource",
		},
		"no chart": {
			[]string{"--cert-manager", "oci://example.com/cert-manager:v1.21.2", "--to", filepath.Join(dir, "a.tar")},
			"expected oci://registry.example.com/path/charts/cert-manager",
		},
		"no archive": {[]string{"--archive", empty, "--to", "oci://example.com/a"}, "is not an OCI image layout"},
		"another scheme": {
			[]string{"infrastructure-aws", "--to", "oci+http://example.com/a"},
			"--to oci+http://example.com/a has an unknown scheme; write oci://REGISTRY/PATH, http://REGISTRY/PATH for a " +
				"registry without TLS, or the name of an archive",
		},
		"files of nothing": {[]string{"--files", filepath.Join(dir, "files")}, "there is nothing to copy"},
		"files of an archive": {
			[]string{"--archive", empty, "--files", dir, "--to", "oci://example.com/a"}, "nothing else; leave out --files",
		},
		"files and images that go nowhere": {
			[]string{"infrastructure-aws", "--files", dir, "--image", "example.com/a:v1", "--parallel", "2"},
			"--files copies neither charts nor images without --to; leave out --image, --parallel",
		},
		"files of a dry run": {
			[]string{"infrastructure-aws", "--files", dir, "--dry-run"}, "--dry-run writes nothing; leave out --files",
		},
		"a registry's flags for an archive": {
			[]string{"infrastructure-aws", "--to", filepath.Join(dir, "a.tar"), "--overwrite"},
			"there is no registry to copy to; leave out --overwrite",
		},
		"two sources": {
			[]string{"infrastructure-aws", "--source", dir, "--config", empty, "--dry-run"},
			"--source is where all releases come from; leave out --config",
		},
		"an archive and providers": {
			[]string{"infrastructure-aws", "--archive", empty, "--to", "oci://example.com/a"},
			"--archive copies everything that the archive contains, and nothing else; leave out infrastructure-aws",
		},
		"an archive and what selects other content": {
			[]string{
				"--archive", empty, "--to", "oci://example.com/a", "--filename", empty, "--installed", "--source", dir, "--config",
				empty, "--image", "example.com/a:v1", "--cert-manager", "v1.21.2", "--platform", "linux/amd64", "--charts-only",
			},
			"and nothing else; leave out --filename, --installed, --source, --config, --image, --cert-manager, --platform, " +
				"--charts-only",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := runMirror(t, test.args...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.message)))
		})
	}
}

func TestMirrorInstalled(t *testing.T) {
	g := NewWithT(t)
	b := bedtest.StartAPIServer(t, harness.OwnCRDs()...)

	c, err := harness.NewClient(b.Config())
	g.Expect(err).NotTo(HaveOccurred())

	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Name: "docker", Namespace: "default"}}
	g.Expect(c.Create(t.Context(), p)).To(Succeed())
	archive := filepath.Join(t.TempDir(), "mirror.tar")
	args := []string{"--installed", "--kubeconfig", b.Kubeconfig(), "--charts-only", "--to", archive}
	_, _, err = runMirror(t, args...)
	g.Expect(err).To(MatchError(ContainSubstring("InfrastructureProvider default/docker has no chart yet")))

	opened, err := openFolder(
		t.Context(), filepath.Join(sampleProviders, "infrastructure-docker", "v1.0.0"), &identity{})
	g.Expect(err).NotTo(HaveOccurred())
	built, err := opened.build()
	g.Expect(err).NotTo(HaveOccurred())
	stored, err := store.New(built)
	g.Expect(err).NotTo(HaveOccurred())

	kept := &store.Store{Client: c, Namespace: "kube-system"}
	g.Expect(kept.Put(t.Context(), stored, p.Namespace, "", false)).To(Succeed())

	p.Status.Chart = &v1alpha2.ChartStatus{Digest: stored.Digest, Reference: kept.Reference(stored.Digest)}
	g.Expect(c.Status().Update(t.Context(), p)).To(Succeed())
	out, _, err := runMirror(t, args...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("1 chart and 0 images"))

	dir := t.TempDir()
	_, _, err = runMirror(t, "--installed", "--kubeconfig", b.Kubeconfig(), "--files", dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(filepath.Join(dir, "infrastructure-docker", "v1.0.0", "metadata.yaml")).To(BeARegularFile())
}

// TestMirrorFiles: the files of a provider are a local repository of clusterctl, with all that its release has, and
// with all but the components if its chart is all there is.
func TestMirrorFiles(t *testing.T) {
	g := NewWithT(t)
	folder, _, _, registry, access := publishedProvider(t)
	published := filepath.Join(folder, "infrastructure-docker", "v1.0.0")
	template := "kind: Cluster\nmetadata: {name: \"${CLUSTER_NAME}\"}\n"
	g.Expect(os.WriteFile(filepath.Join(published, "cluster-template-dev.yaml"), []byte(template), 0o600)).To(Succeed())

	mirror := func(args ...string) (dir, out string) {
		t.Helper()

		dir = t.TempDir()
		out, _, err := runMirror(t, append(append([]string{"infrastructure-docker", "--files", dir}, args...), access...)...)
		g.Expect(err).NotTo(HaveOccurred())

		return filepath.Join(dir, "infrastructure-docker", "v1.0.0"), out
	}
	names := func(dir string) []string {
		names, err := fileNames(dir)
		g.Expect(err).NotTo(HaveOccurred())

		return names
	}

	written, out := mirror("--source", folder, "--to", "oci://"+registry.Address+"/mirror")
	g.Expect(names(written)).To(ConsistOf(names(published)))

	for _, name := range names(published) {
		want, err := os.ReadFile(filepath.Join(published, name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.ReadFile(filepath.Join(written, name))).To(Equal(want), name)
	}

	g.Expect(out).To(And(
		ContainSubstring("has the files of 1 provider. Name them in clusterctl's configuration:\nproviders:\n"+
			"- name: docker\n  type: InfrastructureProvider\n  url: "+written+"/infrastructure-components.yaml\n"),
		ContainSubstring("--chart-repository "),
	))

	config := filepath.Join(t.TempDir(), "clusterctl.yaml")
	g.Expect(os.WriteFile(config, fmt.Appendf(nil, "providers:\n- {name: docker, type: InfrastructureProvider, url: %q}\n",
		"oci://"+registry.Address+"/mirror/charts/infrastructure-docker"), 0o600)).To(Succeed())

	written, _ = mirror("--config", config)
	g.Expect(names(written)).To(ConsistOf("metadata.yaml", "cluster-template-dev.yaml"))
}

// TestChartBytes: what `chart build` writes is what a mirror has, with and without an archive in between.
func TestChartBytes(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	r, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Dir: t.TempDir()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(r.Stop)

	_, _, err = run(t, "build", sampleProviders+"/infrastructure-docker/v1.0.0", "--destination", dir)
	g.Expect(err).NotTo(HaveOccurred())
	built, err := os.ReadFile(filepath.Join(dir, "infrastructure-docker-1.0.0.tgz"))
	g.Expect(err).NotTo(HaveOccurred())

	archive := filepath.Join(dir, "mirror.tar")
	direct, carried := "http://"+r.Address+"/direct", "http://"+r.Address+"/carried"
	provider := []string{"infrastructure-docker:v1.0.0", "--source", sampleProviders, "--charts-only"}

	for _, args := range [][]string{
		append(provider, "--to", direct), append(provider, "--to", archive), {"--archive", archive, "--to", carried},
	} {
		_, _, err := runMirror(t, args...)
		g.Expect(err).NotTo(HaveOccurred())
	}

	c, err := oci.NewClient(transport.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	for _, place := range []string{direct, carried} {
		ref, err := oci.Parse(place + "/charts/infrastructure-docker:1.0.0")
		g.Expect(err).NotTo(HaveOccurred())
		pulled, err := c.PullChart(t.Context(), ref)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pulled.Archive).To(Equal(built), place)
	}
}
