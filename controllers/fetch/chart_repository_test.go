package fetch

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/cosign"
	"github.com/capstan-project/capstan/test/image"
)

// newChartRepository returns an empty chart repository and its address.
func newChartRepository(t *testing.T) (*Registry, string) {
	t.Helper()
	g := NewWithT(t)

	server, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Dir: t.TempDir()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(server.Stop)

	address := "http://" + server.Address + "/charts"
	registry, err := NewRegistry(address, nil, nil)
	g.Expect(err).NotTo(HaveOccurred())

	return registry, address
}

func TestChartRepositoryKeys(t *testing.T) {
	g := NewWithT(t)
	registry, address := newChartRepository(t)

	key, err := cosign.NewKey()
	g.Expect(err).NotTo(HaveOccurred())

	file := filepath.Join(t.TempDir(), "cosign.pem")
	g.Expect(os.WriteFile(file, key.Public, 0o600)).To(Succeed())

	registry.VerifyKeys, registry.Read = file, os.ReadFile
	g.Expect(registry.CheckVerifyKeys()).To(Succeed())

	r := &Resolver{Readers: &access.Readers{}, Registry: registry, Catalog: CatalogFile(DefaultConfigFile)}
	find := func(name string) (*source.Release, source.Version, error) {
		from, err := r.Source(provider(name, v1alpha2.ProviderSpec{}))
		g.Expect(err).NotTo(HaveOccurred())
		version, err := from.Resolve(t.Context(), source.Request{Version: "v1.0.0"})
		g.Expect(err).NotTo(HaveOccurred())

		found, err := from.Fetch(t.Context(), version)

		return found, version, err
	}

	for _, name := range []string{"aws", "unlisted"} {
		made, err := chart.New(chart.Metadata{
			APIVersion: "v2", Name: "infrastructure-" + name, Version: "1.0.0", AppVersion: "v1.0.0",
			Annotations: map[string]string{
				chartgen.AnnotationContentID: "2-abc", chartgen.AnnotationContract: "v1beta1",
			},
		}, nil)
		g.Expect(err).NotTo(HaveOccurred())
		ref, err := oci.Parse(address + "/infrastructure-" + name + ":1.0.0")
		g.Expect(err).NotTo(HaveOccurred())
		pushed, err := image.PushChart(t.Context(), registry.Client, ref, made)
		g.Expect(err).NotTo(HaveOccurred())

		_, _, err = find(name)
		g.Expect(err).To(MatchError(And(
			ContainSubstring("it has no cosign signature"), ContainSubstring("--chart-repository-verify-keys"),
		)), name)

		signed := pushed.Reference
		g.Expect(key.Tag(t.Context(), registry.Client, signed, signed.Digest, cosign.Payload(signed.Digest))).To(Succeed())

		found, version, err := find(name)
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(found.Chart).To(Equal(made))
		g.Expect(version.Origin.String()).To(ContainSubstring("signed with Cosign, by keys in " + file))
	}
}

func TestCheckVerifyKeys(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())

		return path
	}
	key, err := cosign.NewKey()
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect((&Registry{}).CheckVerifyKeys()).To(Succeed())
	g.Expect((&Registry{VerifyKeys: file("valid", string(key.Public)), Read: os.ReadFile}).CheckVerifyKeys()).To(Succeed())

	for message, path := range map[string]string{
		"no such file":        filepath.Join(folder, "absent"),
		"the file is empty":   file("empty", ""),
		"is not a public key": file("invalid", "x"),
	} {
		g.Expect((&Registry{VerifyKeys: path, Read: os.ReadFile}).CheckVerifyKeys()).To(MatchError(And(
			HavePrefix("--chart-repository-verify-keys: "), ContainSubstring(message),
		)))
	}
}

// The chart repository is the source of all providers, and nothing else is contacted unless that is allowed.
func TestChartRepositoryIsTheOnlySource(t *testing.T) {
	registry, err := NewRegistry("oci://registry.bank.example/capi/charts", nil, nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	resolver := func(flags ...string) *Resolver {
		return &Resolver{
			Readers: &access.Readers{}, Registry: registry, Catalog: CatalogFile(DefaultConfigFile),
			Policy: newPolicy(t, flags...),
		}
	}

	for _, name := range []string{"aws", "unlisted"} {
		p := provider(name, v1alpha2.ProviderSpec{})
		for _, flags := range [][]string{nil, {"--allowed-source-hosts=ghcr.io"}} {
			NewWithT(t).Expect(origin(t, resolver(flags...), p)).
				To(Equal("oci://registry.bank.example/capi/charts/infrastructure-" + name + ":v1.0.0"))
		}
	}

	for address, config := range map[string]v1alpha2.FetchConfiguration{
		"https://github.com/x/y/releases/latest/z.yaml": {URL: "https://github.com/x/y/releases/latest/z.yaml"},
		"https://mirror.bank.example/x":                 {HTTP: "https://mirror.bank.example/x"},
		"oci://ghcr.io/x/y":                             {OCI: "oci://ghcr.io/x/y"},
		"ghcr.io/x/y":                                   {Image: "ghcr.io/x/y"},
		"registry.bank.example/capi/charts/other":       {OCI: "registry.bank.example/capi/charts/other"},
	} {
		g := NewWithT(t)
		p := provider("aws", fetching(config))

		_, err := resolver().Source(p)
		g.Expect(err).To(HaveField("Reason", v1alpha2.FetchConfigValidationErrorReason))
		g.Expect(err).To(MatchError("the source " + address + " is not allowed: providers come from the chart repository " +
			"oci://registry.bank.example/capi/charts; remove spec.fetchConfig, or allow the source's host with the operator's " +
			"flag --allowed-source-hosts"))

		_, err = resolver("--allowed-source-hosts=quay.io").Source(p)
		g.Expect(err).To(MatchError(ContainSubstring("its host is not one of quay.io")))

		_, err = resolver("--allowed-source-hosts=quay.io,ghcr.io,github.com,*.bank.example").Source(p)
		g.Expect(err).NotTo(HaveOccurred())
	}
}

// What the chart repository lacks is reported with the reference that it should have.
func TestMissingChart(t *testing.T) {
	g := NewWithT(t)
	registry, address := newChartRepository(t)

	r := &Resolver{Readers: &access.Readers{}, Registry: registry, Catalog: CatalogFile(DefaultConfigFile)}
	from, err := r.Source(provider("aws", v1alpha2.ProviderSpec{}))
	g.Expect(err).NotTo(HaveOccurred())

	const fix = "copy the version there, for example with `capstan mirror`, or correct the path or the version"

	version, err := from.Resolve(t.Context(), source.Request{Version: "v2.11.1"})
	g.Expect(err).NotTo(HaveOccurred())

	_, err = from.Fetch(t.Context(), version)
	g.Expect(source.IsNotFound(err)).To(BeTrue())
	g.Expect(err).To(MatchError("there is no " + address + "/infrastructure-aws:2.11.1, nor the tag v2.11.1; " + fix))

	_, err = from.Resolve(t.Context(), source.Request{})
	g.Expect(source.IsNotFound(err)).To(BeTrue())
	g.Expect(err).To(MatchError(HavePrefix(address + "/infrastructure-aws: it has no tags; " + fix)))
}
