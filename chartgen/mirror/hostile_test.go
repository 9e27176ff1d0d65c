package mirror

import (
	"archive/tar"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// hostile is a registry that makes up manifests when it is asked for them.
type hostile struct {
	mu        sync.Mutex
	manifests map[string][]byte // by digest, or "v1.0.0"
	// referrers makes the answer to the question what refers to a manifest.
	referrers func(h *hostile, subject digest.Digest) []ocispec.Descriptor
}

// add makes a manifest with the layers, which may refer to a subject.
func (h *hostile) add(subject *ocispec.Descriptor, layers ...ocispec.Descriptor) ocispec.Descriptor {
	data, _ := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: ocispec.DescriptorEmptyJSON, Layers: layers, Subject: subject,
		Annotations: map[string]string{"number": fmt.Sprint(len(h.manifests))},
	})
	desc := ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(data), Size: int64(len(data)),
	}
	h.manifests[desc.Digest.String()] = data

	return desc
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()

	kind, name := filepath.Base(filepath.Dir(r.URL.Path)), filepath.Base(r.URL.Path)
	data, exists := h.manifests[name]

	switch {
	case kind == "referrers" && h.referrers != nil:
		w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		_ = json.NewEncoder(w).Encode(ocispec.Index{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex,
			Manifests: h.referrers(h, digest.Digest(name)),
		})
	case kind == "manifests" && exists:
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(data).String())
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// TestHostileRegistry: what a registry says of an image is limited before it is believed.
func TestHostileRegistry(t *testing.T) {
	layer := func(n int, size int64) ocispec.Descriptor {
		return ocispec.Descriptor{
			MediaType: ocispec.MediaTypeImageLayerGzip, Digest: digest.FromString(fmt.Sprint(n)), Size: size,
		}
	}
	signed := func(number int) func(h *hostile, subject digest.Digest) []ocispec.Descriptor {
		return func(h *hostile, subject digest.Digest) (all []ocispec.Descriptor) {
			for range number {
				all = append(all, h.add(&ocispec.Descriptor{
					MediaType: ocispec.MediaTypeImageManifest, Digest: subject, Size: int64(len(h.manifests[subject.String()])),
				}))
			}

			return all
		}
	}

	many := make([]ocispec.Descriptor, maxContent)
	for n := range many {
		many[n] = layer(n, 1)
	}

	for name, test := range map[string]struct {
		layers    []ocispec.Descriptor
		referrers func(h *hostile, subject digest.Digest) []ocispec.Descriptor
		message   string
	}{
		"signatures of signatures without end": {
			referrers: signed(1), message: "what refers to it is referred to itself, more than 4 times over",
		},
		"many signatures of each": {referrers: signed(200), message: "more than 4 times over"},
		"many layers":             {layers: many, message: "more than 10000 manifests and layers"},
		"a negative size":         {layers: []ocispec.Descriptor{layer(1, -1)}, message: "a negative size"},
		"sizes that overflow": {
			layers:  []ocispec.Descriptor{layer(1, math.MaxInt64), layer(2, math.MaxInt64), layer(3, math.MaxInt64)},
			message: "more than 1 TiB in all",
		},
		"many small sizes": {
			layers:  []ocispec.Descriptor{layer(1, maxItemSize/2), layer(2, maxItemSize/2)},
			message: "more than 1 TiB in all",
		},
		"values": {
			layers: []ocispec.Descriptor{{
				MediaType: ocispec.MediaTypeImageLayer, Digest: digest.FromString(""),
				URLs: strings.Split(strings.Repeat(",", maxManifestValues), ","),
			}},
			message: "a manifest with more than 100000 values",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := &hostile{manifests: map[string][]byte{}, referrers: test.referrers}
			h.manifests["v1.0.0"] = h.manifests[h.add(nil, test.layers...).Digest.String()]

			server := httptest.NewServer(h)
			t.Cleanup(server.Close)

			ref := repository(t, server.URL).Join("image").WithTag("v1.0.0")
			_, err := imageItems(t.Context(), newClient(t, transport.Options{}), ref, nil)
			g.Expect(err).To(MatchError(And(HavePrefix("read "+ref.String()+": "), ContainSubstring(test.message))))
		})
	}
}

// slowStorage gives a byte a second of anything, as long as it is waited for.
type slowStorage struct{ content.ReadOnlyGraphStorage }

func (s slowStorage) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	body, err := s.ReadOnlyGraphStorage.Fetch(ctx, desc)
	return slowBody{ReadCloser: body, ctx: ctx}, err
}

type slowBody struct {
	io.ReadCloser
	ctx context.Context
}

func (b slowBody) Read(p []byte) (int, error) {
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(time.Second):
		return b.ReadCloser.Read(p[:1])
	}
}

// TestSlowSource: a source that keeps sending, but hardly anything, does not keep the mirror.
func TestSlowSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		storage := memory.New()
		layer, err := oras.PushBytes(t.Context(), storage, "x", make([]byte, 10<<20))
		g.Expect(err).NotTo(HaveOccurred())
		root, err := oras.PackManifest(t.Context(), storage, oras.PackManifestVersion1_1, "application/x",
			oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}, ManifestAnnotations: map[string]string{
				"long": strings.Repeat("x", 4096),
			}})
		g.Expect(err).NotTo(HaveOccurred())

		ref := oci.Reference{Registry: "slow.example.com", Repository: "image", Tag: "v1.0.0"}
		start := time.Now()

		_, err = newItem(t.Context(), ref, root, slowStorage{storage})
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
		g.Expect(time.Since(start)).To(BeNumerically("~", maxLookup, time.Second))

		item, err := newItem(t.Context(), ref, root, storage)
		g.Expect(err).NotTo(HaveOccurred())

		item.source = slowStorage{storage}
		archive, err := CreateArchive(filepath.Join(t.TempDir(), "mirror.tar"))
		g.Expect(err).NotTo(HaveOccurred())

		start = time.Now()

		g.Expect(Copy(t.Context(), []*Item{item}, archive, Options{})).To(MatchError(
			ContainSubstring("slow.example.com did not answer in time, or the connection stalled")))
		g.Expect(time.Since(start)).To(BeNumerically("~", copyTime+10<<20/minRate*time.Second, time.Minute))
	})
}

// TestHostileArchive: the index of an archive is limited before it is decoded.
func TestHostileArchive(t *testing.T) {
	named := func(n int) string {
		return fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":2,"digest":%q,`+
			`"annotations":{"org.opencontainers.image.ref.name":"example.com/x:%d"}}`, digest.FromString("{}"), n)
	}

	for name, indexes := range map[string][]string{
		"empty manifests": {`{"manifests":[` + strings.Repeat("{},", 1<<20) + `{}]}`},
		"names": {`{"manifests":[` + strings.Join(slices.Collect(func(yield func(string) bool) {
			for n := 0; n < 20000 && yield(named(n)); n++ {
			}
		}), ",") + `]}`},
		"large":      {`{"manifests":[]}` + strings.Repeat(" ", maxIndex)},
		"the second": {`{"manifests":[]}`, `{"manifests":[]}` + strings.Repeat(" ", maxIndex)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "mirror.tar")
			out, err := os.Create(file)
			g.Expect(err).NotTo(HaveOccurred())

			archive := tar.NewWriter(out)
			g.Expect(addJSON(archive, ocispec.ImageLayoutFile, ocispec.ImageLayout{Version: "1.0.0"})).To(Succeed())
			g.Expect(add(archive, "blobs/sha256/"+digest.FromString("{}").Encoded(), strings.NewReader("{}"), 2)).To(Succeed())

			for _, index := range indexes {
				g.Expect(add(archive, ocispec.ImageIndexFile, strings.NewReader(index), int64(len(index)))).To(Succeed())
			}

			g.Expect(archive.Close()).To(Succeed())
			g.Expect(out.Close()).To(Succeed())

			_, err = OpenArchive(t.Context(), file)
			g.Expect(err).To(MatchError(file + ": its index.json is larger than that of any mirror: 4096 KiB and 100000 " +
				"values are the limit; create several archives"))
		})
	}
}
