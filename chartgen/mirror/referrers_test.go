package mirror

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/cosign"
	"github.com/capstan-project/capstan/test/image"
)

// limitedProxy passes on a number of requests to a registry, and refuses all that follow.
type limitedProxy struct {
	*httputil.ReverseProxy
	left atomic.Int32
}

func (p *limitedProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.left.Add(-1) < 0 {
		w.WriteHeader(http.StatusForbidden)
		return
	}

	p.ReverseProxy.ServeHTTP(w, r)
}

// signedImage publishes an image with three referrers, and returns the references of its two tags and its manifest.
func signedImage(t *testing.T, c *oci.Client) (refs []oci.Reference, root ocispec.Descriptor) {
	t.Helper()
	g := NewWithT(t)

	server := runRegistry(t, bed.RegistryOptions{Implementation: bed.GoContainerRegistry})
	ref := repository(t, "http://"+server.Address).Join("cluster-api/controller").WithTag("v1.0.0")
	root, err := image.Push(t.Context(), c, ref, nil, image.Random(1<<10, 1))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Repository(ref).Tag(t.Context(), root, "v1")).To(Succeed())

	signByReferrer(t, newKey(t), c, ref, root)
	signByReferrer(t, newKey(t), c, ref, root)

	sbom := image.NewBlob("application/spdx+json", []byte("{}"))
	g.Expect(cosign.Referrer{Subject: root, Type: "application/spdx+json", Layer: sbom}.Push(t.Context(), c, ref)).
		To(Succeed())

	return []oci.Reference{ref, ref.WithTag("v1")}, root
}

// listed returns the digests of the referrers that a mirror lists, and all of those that it should list.
func listed(
	t *testing.T, c *oci.Client, target *Registry, source oci.Reference, root ocispec.Descriptor,
) (is, want []string) {
	t.Helper()

	digests := func(ref oci.Reference) []string {
		found, err := c.Referrers(t.Context(), ref, root)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		var all []string
		for _, f := range found {
			all = append(all, f.Digest.String())
		}

		return all
	}

	return digests(target.Base.Join(source.Repository)), digests(source)
}

// TestSignaturesSurviveInterruptions: wherever a copy is interrupted, the next one completes it.
func TestSignaturesSurviveInterruptions(t *testing.T) {
	c := newClient(t, transport.Options{})
	refs, root := signedImage(t, c)

	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) {
			g := NewWithT(t)
			server := runRegistry(t, bed.RegistryOptions{Implementation: i})
			proxy := &limitedProxy{
				ReverseProxy: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server.Address}),
			}
			address := httptest.NewServer(proxy)
			t.Cleanup(address.Close)

			for requests, complete := int32(0), false; !complete; requests++ {
				target := &Registry{
					Client: c, Base: repository(t, address.URL).Join(fmt.Sprintf("after-%d-requests", requests)),
				}

				proxy.left.Store(requests)

				complete = Copy(t.Context(), plainImages(t, c, refs[:1]), target, Options{}) == nil

				proxy.left.Store(1000)
				g.Expect(Copy(t.Context(), plainImages(t, c, refs[:1]), target, Options{})).To(Succeed())

				is, want := listed(t, c, target, refs[0], root)
				g.Expect(want).To(HaveLen(3))
				g.Expect(is).To(ConsistOf(want), "the first copy was interrupted after %d requests", requests)

				mirrored, err := c.Resolve(t.Context(), target.Base.Join(refs[0].Repository).WithTag("v1.0.0"))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(mirrored.Digest).To(Equal(root.Digest))
			}
		})
	}
}

// TestSignaturesOfCopiesAtTheSameTime: copies at the same time lose none of each other's signatures, although there is
// no lock.
func TestSignaturesOfCopiesAtTheSameTime(t *testing.T) {
	c := newClient(t, transport.Options{})
	refs, root := signedImage(t, c)

	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) {
			g := NewWithT(t)
			server := runRegistry(t, bed.RegistryOptions{Implementation: i})

			for run := range 5 {
				target := &Registry{Client: c, Base: repository(t, "http://"+server.Address).Join(fmt.Sprintf("run-%d", run))}

				var mirrors errgroup.Group

				for range 3 {
					all := plainImages(t, c, refs)

					mirrors.Go(func() error { return Copy(t.Context(), all, target, Options{Parallel: len(all)}) })
				}

				g.Expect(mirrors.Wait()).To(Succeed())

				is, want := listed(t, c, target, refs[0], root)
				g.Expect(is).To(ConsistOf(want))
			}
		})
	}
}
