package fetch

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/cosign"
)

func TestChartRepositoryKeys(t *testing.T) {
	g := NewWithT(t)
	server, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Dir: t.TempDir()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(server.Stop)

	address := "http://" + server.Address + "/charts"
	registry, err := NewRegistry(address, "", "")
	g.Expect(err).NotTo(HaveOccurred())

	key, err := cosign.NewKey()
	g.Expect(err).NotTo(HaveOccurred())

	file := filepath.Join(t.TempDir(), "cosign.pem")
	g.Expect(os.WriteFile(file, key.Public, 0o600)).To(Succeed())

	registry.ChartOptions = ChartOptions{VerifyKeys: file}
	g.Expect(registry.ChartOptions.Check(false)).To(Succeed())

	r := &Resolver{Readers: &access.Readers{}, Registry: registry, Config: &ConfigFile{Path: DefaultConfigFile}}
	find := func(name string) (*oci.Chart, source.Version, error) {
		from, err := r.Source(provider(name, v1alpha2.ProviderSpec{}))
		g.Expect(err).NotTo(HaveOccurred())
		version, err := source.Resolve(t.Context(), from, source.Request{Version: "v1.0.0"})
		g.Expect(err).NotTo(HaveOccurred())

		found, err := from.(source.ChartSource).Chart(t.Context(), version)

		return found, version, err
	}

	for _, name := range []string{"aws", "unlisted"} {
		made, err := chart.New(chart.Metadata{
			APIVersion: "v2", Name: "infrastructure-" + name, Version: "1.0.0", AppVersion: "v1.0.0",
			Annotations: map[string]string{
				chartgen.AnnotationContentID: "2-abc", chartgen.AnnotationContract: "v1beta1",
				chartgen.AnnotationSource: "https://github.com/kubernetes-sigs/cluster-api-provider-aws/releases/download/" +
					"v1.0.0/infrastructure-components.yaml",
			},
		}, nil)
		g.Expect(err).NotTo(HaveOccurred())
		ref, err := oci.Parse(address + "/infrastructure-" + name + ":1.0.0")
		g.Expect(err).NotTo(HaveOccurred())
		pushed, err := registry.Client.PushChart(t.Context(), ref, made)
		g.Expect(err).NotTo(HaveOccurred())

		_, _, err = find(name)
		g.Expect(err).To(MatchError(And(
			ContainSubstring("it has no cosign signature"), ContainSubstring("--chart-repository-verify-keys"),
		)), name)

		signed := pushed.Reference
		g.Expect(key.Tag(t.Context(), registry.Client, signed, signed.Digest, cosign.Payload(signed.Digest))).To(Succeed())

		found, version, err := find(name)
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(found.Digest).To(Equal(pushed.Digest))
		g.Expect(version.Origin).To(ContainSubstring("signed with Cosign, by keys in " + file))
	}
}

func TestChartOptions(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())

		return path
	}
	key, err := cosign.NewKey()
	g.Expect(err).NotTo(HaveOccurred())

	valid := file("valid", string(key.Public))

	g.Expect((&ChartOptions{}).Check(true)).To(Succeed())
	g.Expect((&ChartOptions{VerifyKeys: valid}).Check(false)).To(Succeed())

	for message, options := range map[string]ChartOptions{
		"the operator does not sign": {VerifyKeys: valid},
	} {
		g.Expect(options.Check(true)).To(MatchError(ContainSubstring(message)))
	}

	for message, options := range map[string]ChartOptions{
		"no such file":        {VerifyKeys: filepath.Join(folder, "absent")},
		"the file is empty":   {VerifyKeys: file("empty", "")},
		"is not a public key": {VerifyKeys: file("invalid", "x")},
	} {
		g.Expect(options.Check(false)).To(MatchError(And(
			HavePrefix("--chart-repository-verify-keys: "), ContainSubstring(message),
		)))
	}
}
