package charts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/mirror/certmanager"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/fakesource"
)

// pushCertManager pushes cert-manager's chart and random images with
// the names of cert-manager's. It returns a function that runs helm.
func pushCertManager(
	t *testing.T, r *bed.Registry, access []string, version string,
) (helm func(args ...string) string) {
	t.Helper()
	g := NewWithT(t)
	set, err := tools.Find()
	g.Expect(err).NotTo(HaveOccurred())

	ca, dir := access[1], t.TempDir()
	helm = func(args ...string) string {
		t.Helper()

		cmd := exec.Command(set.Program(tools.Helm3), args...)
		cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))

		return string(out)
	}

	archive, packed, err := set.PackCertManager(t.Context(), dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(packed).To(Equal(version))

	helm(
		"push",
		archive,
		"oci://"+r.Address+"/jetstack/charts",
		"--ca-file",
		ca,
		"--username",
		"me",
		"--password",
		registryPassword,
	)

	for _, name := range []string{"controller", "acmesolver", "cainjector", "startupapicheck", "webhook"} {
		pushTestImage(t, r, r.Address+"/jetstack/cert-manager-"+name+":"+version)
	}

	return helm
}

func TestMirrorCertManager(t *testing.T) {
	g := NewWithT(t)
	folder, image, public, private, access := publishedProvider(t)

	const version = certmanager.Version

	helm := pushCertManager(t, public, access, version)
	server := &fakesource.Server{}
	g.Expect(server.PublishFolder("owner/docker", "v1.0.0", filepath.Join(folder, "infrastructure-docker", "v1.0.0"))).
		To(Succeed())
	g.Expect(server.Start()).To(Succeed())
	t.Cleanup(func() { _ = server.Stop() })
	dir := t.TempDir()
	config, archive := filepath.Join(dir, "clusterctl.yaml"), filepath.Join(dir, "mirror.tar")
	g.Expect(os.WriteFile(config, fmt.Appendf(nil, "providers:\n- {name: docker, type: InfrastructureProvider, url: %q}\n",
		server.URL()+"/owner/docker/releases/latest/infrastructure-components.yaml"), 0o600)).To(Succeed())

	run := func(args ...string) string {
		t.Helper()
		out, _, err := runMirror(t, append(args, access...)...)
		g.Expect(err).NotTo(HaveOccurred())

		return out
	}
	wanted := []string{
		"infrastructure-docker",
		"--config",
		config,
		"--cert-manager",
		"oci://" + public.Address + "/jetstack/charts/cert-manager:" + version,
	}

	out := run(append(wanted, "--dry-run")...)
	g.Expect(out).
		To(And(
			MatchRegexp(`KiB\s+charts/infrastructure-docker:1\.0\.0\n`),
			MatchRegexp(`KiB\s+charts/cert-manager:`+regexp.QuoteMeta(version)+`\n`),
			MatchRegexp(`1\.0 MiB\s+`+regexp.QuoteMeta(image)),
			MatchRegexp(`1\.0 MiB\s+`+regexp.QuoteMeta(public.Address+"/jetstack/cert-manager-webhook:"+version)),
			MatchRegexp(`1\.[0-9] MiB\s+in total`),
		), "the six images share their layer")
	g.Expect(run(append(wanted, "--to", archive)...)).To(ContainSubstring("2 charts and 6 images"))
	g.Expect(server.Requests("/releases/download/v1.0.0/infrastructure-components.yaml")).To(HaveLen(2))

	public.Stop()
	g.Expect(server.Stop()).To(Succeed())

	out = run("--archive", archive, "--to", "oci://"+private.Address+"/mirror")
	_, command, found := strings.Cut(out, "  helm install cert-manager ")
	g.Expect(found).To(BeTrue(), out)

	args := append([]string{"template", "cert-manager"}, strings.Fields(strings.ReplaceAll(command, "\\\n", ""))...)
	rendered := helm(append(args, "--ca-file", access[1], "--username", "me", "--password", registryPassword)...)
	names := regexp.MustCompile(`(?:image: |solver-image=)"?([^"\s]+)`).FindAllStringSubmatch(rendered, -1)
	g.Expect(names).To(HaveLen(5))

	c := registryClient(t, private)
	for _, name := range names {
		g.Expect(name[1]).To(HavePrefix(private.Address + "/mirror/jetstack/cert-manager-"))
		ref, err := oci.ParseImage(name[1])
		g.Expect(err).NotTo(HaveOccurred())
		_, err = c.Resolve(t.Context(), ref)
		g.Expect(err).NotTo(HaveOccurred())
	}
}
