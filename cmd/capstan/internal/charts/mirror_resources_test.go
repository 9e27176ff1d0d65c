package charts

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/cosign"
	"github.com/capstan-project/capstan/test/fakesource"
	"github.com/capstan-project/capstan/test/image"
)

// TestMirrorReadsFetchConfig: what a resource asks for is copied from where the resource says that it is, and only if
// it is what the resource requires.
func TestMirrorReadsFetchConfig(t *testing.T) {
	g := NewWithT(t)
	registry, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Dir: t.TempDir()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(registry.Stop)

	c, err := oci.NewClient(transport.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	files := map[string][]byte{}
	layers := []image.Blob{}

	for _, name := range []string{"metadata.yaml", "infrastructure-components.yaml"} {
		files[name], err = os.ReadFile(filepath.Join("../../../../test/data/providers/infrastructure-docker/v1.0.0", name))
		g.Expect(err).NotTo(HaveOccurred())

		layer := image.NewBlob("application/vnd.test.file", files[name])
		layer.Descriptor.Annotations = map[string]string{ocispec.AnnotationTitle: name}
		layers = append(layers, layer)
	}

	// The catalog has a provider of the name, too.
	address := "http://" + registry.Address + "/fork/infrastructure-docker"
	ref, err := oci.Parse(address + ":v1.0.0")
	g.Expect(err).NotTo(HaveOccurred())
	pushed, err := image.PushArtifact(t.Context(), c, ref, "application/vnd.acme.config", layers...)
	g.Expect(err).NotTo(HaveOccurred())

	key, err := cosign.NewKey()
	g.Expect(err).NotTo(HaveOccurred())
	other, err := cosign.NewKey()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(key.Tag(t.Context(), c, ref, pushed.Digest, cosign.Payload(pushed.Digest))).To(Succeed())

	server := &fakesource.Server{}
	server.Publish("fork/docker", "v1.0.0", files)
	g.Expect(server.Start()).To(Succeed())
	t.Cleanup(func() { _ = server.Stop() })

	website := server.URL() + "/fork/docker/releases/v1.0.0/infrastructure-components.yaml"
	provider := func(fetchConfig string) string {
		return "apiVersion: operator.cluster.x-k8s.io/v1alpha2\nkind: InfrastructureProvider\n" +
			"metadata: {name: docker, namespace: a}\nspec: {version: v1.0.0, fetchConfig: {" + fetchConfig + "}}\n"
	}
	secret := func(key cosign.Key) string {
		return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: a}\ndata: {cosign.pub: " +
			base64.StdEncoding.EncodeToString(key.Public) + "}\n"
	}
	noDigest := "sha256:" + strings.Repeat("0", 64)

	for name, test := range map[string]struct{ file, message string }{
		"an artifact": {file: provider("oci: " + address)},
		"a website":   {file: provider("url: " + website)},
		"after the end of a document": {
			file: "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n...\n---\n" +
				provider("oci: "+address) + "...\n",
		},
		"after an end alone": {
			file:    "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n...\n" + provider("oci: "+address),
			message: "line 4: did not find expected <document start>; begin what follows the end of a document with ---",
		},
		"in a list": {
			file: "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(provider("oci: "+address), "\n", "\n  "),
		},
		"the right digest": {file: provider(fmt.Sprintf("oci: %s, digest: %q", address, pushed.Digest))},
		"another digest": {
			file: provider(fmt.Sprintf("oci: %s, digest: %q", address, noDigest)), message: "asks for " + noDigest,
		},
		"another digest of a website": {
			file: provider(fmt.Sprintf("url: %s, digest: %q", website, noDigest)), message: noDigest,
		},
		"signed": {
			file: provider("oci: "+address+", verify: {secretRef: {name: keys}}") + secret(key),
		},
		"signed by another key": {
			file:    provider("oci: "+address+", verify: {secretRef: {name: keys}}") + secret(other),
			message: "none of its 1 cosign signatures is by a trusted key; check the keys in Secret keys",
		},
		"without the keys": {
			file:    provider("oci: " + address + ", verify: {secretRef: {name: keys}}"),
			message: "spec.fetchConfig.verify needs the keys in Secret keys, which is not in ",
		},
		"ConfigMaps": {
			file:    provider("selector: {matchLabels: {a: b}}"),
			message: "names ConfigMaps or a folder, which only the operator can read; set --installed, or --source",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			resources := filepath.Join(t.TempDir(), "providers.yaml")
			g.Expect(os.WriteFile(resources, []byte(test.file), 0o600)).To(Succeed())

			out, _, err := runMirror(t, "-f", resources, "--charts-only", "--to", filepath.Join(t.TempDir(), "mirror.tar"))
			if test.message != "" {
				g.Expect(err).To(MatchError(And(Or(HavePrefix("infrastructure-docker: "), HavePrefix(resources+": ")),
					ContainSubstring(test.message))))

				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).To(ContainSubstring("1 chart and 0 images"))
		})
	}
}
