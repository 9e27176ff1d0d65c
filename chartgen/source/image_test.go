package source_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/image"
)

const ownImage = "registry.example.com/staging:docker-controllers"

func TestImageFetch(t *testing.T) {
	c, base := runRegistry(t)
	metadata := sampleFile(t, "v1.0.0", "metadata.yaml")
	components := sampleFile(t, "v1.0.0", "infrastructure-components.yaml") + `
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: images
  namespace: x
data:
  own: ` + ownImage + `
  other: ` + ownImage + `-debug
`
	about := `{"providerName": "cluster-api-provider-docker", "providerType": "infrastructure",
"providerVersion": "v1.0.0", "imageName": "` + ownImage + `"}`
	crd := components + `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: as.x
  labels: {cluster.x-k8s.io/v1beta1: v1, cluster.x-k8s.io/v1beta2: v1, cluster.x-k8s.io/provider: x}
`
	entry := func(name, content string) image.Entry { return image.Entry{Name: name, Content: content} }

	for name, test := range map[string]struct {
		layers    [][]byte
		platforms []string
		metadata  string
		message   string
	}{
		"clusterctl's files": {
			layers: [][]byte{
				image.Layer(
					entry("capi-manifests/metadata.yaml", metadata),
					entry("capi-manifests/infrastructure-components.yaml", components),
					entry(
						"capi-manifests/metadata.json",
						`{"providerName":"docker","providerVersion":"v1.0.0","imageName":"`+ownImage+`"}`,
					),
				),
			},
			metadata: metadata,
		},
		"for many platforms, in two layers": {
			layers: [][]byte{
				image.Layer(entry("capi-manifests/manifests", components)),
				image.Layer(entry("capi-manifests/metadata.yaml", metadata+"imageName: "+ownImage+"\n")),
			},
			platforms: []string{"linux/s390x", "linux/amd64"},
			metadata:  metadata + "imageName: " + ownImage + "\n",
		},
		"without clusterctl's metadata": {
			layers: [][]byte{
				image.Layer(entry("capi-manifests/metadata.json", about), entry("capi-manifests/manifests", crd)),
			},
			metadata: "releaseSeries:\n- major: 1\n  minor: 0\n  contract: v1beta2\n",
		},
		"nothing": {
			layers:  [][]byte{image.Layer(entry("etc/passwd", "x"))},
			message: "has no folder /capi-manifests; choose an image",
		},
		"subfolders only": {
			layers:  [][]byte{image.Layer(entry("capi-manifests/v1.0.0/components.yaml", components))},
			message: "/capi-manifests: has no *-components.yaml, nor any other file of a release; add that of v1.0.0",
		},
		"no components": {
			layers:  [][]byte{image.Layer(entry("capi-manifests/metadata.yaml", metadata))},
			message: "has no *-components.yaml, but only metadata.yaml; add that of v1.0.0",
		},
		"another version": {
			layers: [][]byte{
				image.Layer(
					entry("capi-manifests/metadata.json", strings.ReplaceAll(about, "v1.0.0", "v3.0.0")),
					entry("capi-manifests/manifests.yaml", crd),
				),
			},
			message: "about version v3.0.0, not v1.0.0",
		},
		"another provider": {
			layers: [][]byte{
				image.Layer(
					entry("capi-manifests/metadata.json", strings.ReplaceAll(about, "docker", "gcp")),
					entry("capi-manifests/manifests.yaml", crd),
				),
			},
			message: `about the provider "cluster-api-provider-gcp", not docker; correct the image`,
		},
		"another type of provider": {
			layers: [][]byte{
				image.Layer(
					entry("capi-manifests/metadata.json", strings.ReplaceAll(about, "infrastructure", "bootstrap")),
					entry("capi-manifests/manifests.yaml", crd),
				),
			},
			message: `about a provider of the type "bootstrap", not infrastructure`,
		},
		"metadata of another provider beside clusterctl's": {
			layers: [][]byte{
				image.Layer(
					entry("capi-manifests/metadata.yaml", metadata),
					entry("capi-manifests/infrastructure-components.yaml", components),
					entry("capi-manifests/metadata.json", `{"providerName":"`+strings.Repeat("x", 1000)+
						`","providerType":"CoreProvider","providerVersion":"v2.0.0"}`),
				),
			},
			message: `/capi-manifests/metadata.yaml: is about the provider "` + strings.Repeat("x", 64) + `", not docker, and ` +
				`a provider of the type "CoreProvider", not infrastructure, and version v2.0.0, not v1.0.0; correct`,
		},
		"no contract": {
			layers: [][]byte{
				image.Layer(
					entry("capi-manifests/metadata.json", about),
					entry("capi-manifests/manifests.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
				),
			},
			message: "the contract is not known",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ref, err := oci.Parse(
				base + strings.ToLower(strings.NewReplacer(" ", "-", "'", "", ",", "").Replace(name)) + ":v1.0.0",
			)
			g.Expect(err).NotTo(HaveOccurred())
			desc, err := image.Push(t.Context(), c, ref, test.platforms, test.layers...)
			g.Expect(err).NotTo(HaveOccurred())
			i, err := source.NewImage(ref.String(), docker, source.OptionsForClient(c))
			g.Expect(err).NotTo(HaveOccurred())
			versions, err := i.Versions(t.Context())
			g.Expect(err).NotTo(HaveOccurred())

			b, err := i.Fetch(t.Context(), versions[0])
			if test.message != "" {
				g.Expect(transport.Is(err, transport.Invalid)).To(BeTrue())
				g.Expect(err).To(MatchError(ContainSubstring(test.message)))

				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(b.Metadata)).To(ContainSubstring(test.metadata))

			pinned := ref.Registry + "/" + ref.Repository + "@" + desc.Digest.String()
			g.Expect(string(b.Components)).
				To(And(ContainSubstring("own: "+pinned+"\n"), ContainSubstring("other: "+ownImage+"-debug\n")))
			g.Expect(b.Source).To(Equal(ref.WithDigest(desc.Digest).String()))
			_, err = chartgen.Build(b.Bundle)
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}
