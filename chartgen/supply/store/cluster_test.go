package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// noise returns data that does not compress.
func noise(size int) []byte {
	var out bytes.Buffer
	for i := 0; out.Len() < size; i++ {
		sum := sha256.Sum256([]byte(strconv.Itoa(i)))
		out.WriteString(hex.EncodeToString(sum[:]))
	}

	return out.Bytes()[:size]
}

func TestCluster(t *testing.T) {
	g := NewWithT(t)

	c, err := client.New(controlPlane.Get(t).Config(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	store := &Cluster{Client: c}
	key := Key{Namespace: "default", Provider: "infrastructure-x", Version: "v1.0.0+build", ContentID: "1-abc"}
	small, err := chart.New(chart.Metadata{APIVersion: "v2", Name: "infrastructure-x", Version: "1.0.0"}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	large, err := chart.New(small.Metadata, []chart.File{{Name: "noise", Data: noise(4 << 20)}})
	g.Expect(err).NotTo(HaveOccurred())

	configMaps := func() []corev1.ConfigMap {
		list := &corev1.ConfigMapList{}
		g.Expect(
			c.List(t.Context(), list, client.InNamespace("default"), client.MatchingLabels{labelComponent: componentChart}),
		).
			To(Succeed())

		return list.Items
	}

	t.Run("a missing chart is not found", func(t *testing.T) {
		_, err := store.Get(t.Context(), key)
		NewWithT(t).Expect(err).To(MatchError(ErrNotFound))
	})
	t.Run("a chart of any size is read as it was stored", func(t *testing.T) {
		for _, want := range []*chart.Chart{small, large} {
			g := NewWithT(t)
			g.Expect(store.Delete(t.Context(), "default", key.Provider)).To(Succeed())
			put, err := store.Put(t.Context(), key, want)
			g.Expect(err).NotTo(HaveOccurred())
			got, err := store.Get(t.Context(), key)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(put))
			g.Expect(got.Reference).To(HavePrefix("configmap://default/infrastructure-x-1.0.0-build-"))
		}

		NewWithT(t).Expect(len(configMaps())).To(BeNumerically(">", 1))
	})
	t.Run("a chart that was fetched as one is known as such", func(t *testing.T) {
		g := NewWithT(t)
		fetched := Key{Namespace: "default", Provider: "addon-x", Version: "v1.0.0", ContentID: prebuiltPrefix + "abc"}
		put, err := store.Put(t.Context(), fetched, small)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(put.Prebuilt).To(BeTrue())
		g.Expect(store.Get(t.Context(), fetched)).To(Equal(put))
		g.Expect(store.Delete(t.Context(), "default", fetched.Provider)).To(Succeed())
	})
	t.Run("storing it again changes nothing", func(t *testing.T) {
		g := NewWithT(t)
		before := configMaps()
		_, err := store.Put(t.Context(), key, large)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(configMaps()).To(Equal(before))
	})
	t.Run("it cannot be changed by accident", func(t *testing.T) {
		cm := configMaps()[0]
		cm.BinaryData[chunkKey] = []byte("something else")
		NewWithT(t).Expect(c.Update(t.Context(), &cm)).To(MatchError(ContainSubstring("immutable")))
	})
	t.Run(
		"a damaged chart is not found, and storing it again repairs it",
		func(t *testing.T) {
			for _, damage := range []func(corev1.ConfigMap) error{
				func(cm corev1.ConfigMap) error { return c.Delete(t.Context(), &cm) },
				func(cm corev1.ConfigMap) error {
					replaced := cm.DeepCopy()
					replaced.ResourceVersion, replaced.UID = "", ""
					replaced.BinaryData[chunkKey] = []byte("something else")

					if err := c.Delete(t.Context(), &cm); err != nil {
						return err
					}

					return c.Create(t.Context(), replaced)
				},
			} {
				g := NewWithT(t)
				g.Expect(damage(configMaps()[1])).To(Succeed())

				_, err := store.Get(t.Context(), key)
				g.Expect(err).To(MatchError(ErrNotFound))
				put, err := store.Put(t.Context(), key, large)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(store.Get(t.Context(), key)).To(Equal(put))
			}
		},
	)
	t.Run("a chart is found by its digest, and only with that", func(t *testing.T) {
		g := NewWithT(t)

		var put []*Stored

		for _, content := range []string{"1-a", "1-b"} {
			c, err := chart.New(small.Metadata, []chart.File{{Name: "content", Data: []byte(content)}})
			g.Expect(err).NotTo(HaveOccurred())
			stored, err := store.Put(
				t.Context(),
				Key{Namespace: "default", Provider: key.Provider, Version: "v2.0.0+a", ContentID: content},
				c,
			)
			g.Expect(err).NotTo(HaveOccurred())

			put = append(put, stored)
		}

		options := FindOptions{Namespace: "default", Provider: key.Provider, Version: "v2.0.0+a", Digest: put[0].Digest}
		g.Expect(store.Find(t.Context(), options)).To(Equal(put[0]))

		for name, change := range map[string]func(*FindOptions){
			"another namespace": func(o *FindOptions) { o.Namespace = "kube-system" },
			"another provider":  func(o *FindOptions) { o.Provider = "infrastructure-z" },
			"another version":   func(o *FindOptions) { o.Version = "v2.0.0+b" },
			"another digest":    func(o *FindOptions) { o.Digest = chart.Digest([]byte("x")) },
			"no digest":         func(o *FindOptions) { o.Digest = "" },
		} {
			other := options
			change(&other)

			_, err := store.Find(t.Context(), other)
			g.Expect(err).To(MatchError(ErrNotFound), name)
		}
	})
	t.Run("a ConfigMap that falsely claims a digest hides nothing", func(t *testing.T) {
		g := NewWithT(t)
		own := Key{Namespace: "default", Provider: "infrastructure-w", Version: "v1.0.0", ContentID: "1-w"}
		put, err := store.Put(t.Context(), own, small)
		g.Expect(err).NotTo(HaveOccurred())

		for _, name := range []string{"aaa", "zzz"} {
			forged := own.configMap(0, []byte("not this chart"))
			forged.Name = name
			forged.Annotations = map[string]string{annotationDigest: put.Digest, annotationChunks: "1"}
			g.Expect(c.Create(t.Context(), forged)).To(Succeed())
		}

		options := FindOptions{Namespace: "default", Provider: own.Provider, Version: own.Version, Digest: put.Digest}
		g.Expect(store.Find(t.Context(), options)).To(Equal(put))
		g.Expect(store.Delete(t.Context(), "default", own.Provider)).To(Succeed())
	})
	t.Run("no more chunks are read than a chart can have", func(t *testing.T) {
		g := NewWithT(t)
		own := Key{Namespace: "default", Provider: "infrastructure-v", Version: "v1.0.0", ContentID: "1-v"}

		for i := range maxChunks + 1 {
			chunk := own.configMap(i, []byte("x"))
			if i == 0 {
				chunk.Annotations = map[string]string{
					annotationDigest: chart.Digest(bytes.Repeat([]byte("x"), maxChunks+1)),
					annotationChunks: strconv.Itoa(maxChunks + 1),
				}
			}

			g.Expect(c.Create(t.Context(), chunk)).To(Succeed())
		}

		_, err := store.Get(t.Context(), own)
		g.Expect(err).To(MatchError(ContainSubstring("holds a damaged chart")))

		huge, err := chart.New(small.Metadata, []chart.File{{Name: "noise", Data: noise(maxChunks * chunkSize * 2)}})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = store.Put(t.Context(), own, huge)
		g.Expect(err).To(MatchError(ContainSubstring("is larger than")))
		g.Expect(store.Delete(t.Context(), "default", own.Provider)).To(Succeed())
	})
	t.Run("charts of one provider are deleted, and no others", func(t *testing.T) {
		g := NewWithT(t)
		other := key
		other.Provider = "infrastructure-y"
		_, err := store.Put(t.Context(), other, small)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(store.Delete(t.Context(), "default", key.Provider)).To(Succeed())
		g.Expect(configMaps()).To(HaveLen(1))

		_, err = store.Get(t.Context(), other)
		g.Expect(err).NotTo(HaveOccurred())
	})
}
