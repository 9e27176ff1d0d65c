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
	t.Run("a chart is found by its version and origin, without knowing its content", func(t *testing.T) {
		g := NewWithT(t)

		const origin = "https://example.com/owner/x/releases/download/v2.0.0+a/infrastructure-components.yaml"

		_, err := store.Find(t.Context(), FindOptions{Namespace: "default", Provider: key.Provider, Version: "v2.0.0+a"})
		g.Expect(err).To(MatchError(ErrNotFound))

		var put []*Stored

		for _, content := range []string{"1-a", "1-b"} {
			c, err := chart.New(small.Metadata, []chart.File{{Name: "content", Data: []byte(content)}})
			g.Expect(err).NotTo(HaveOccurred())
			stored, err := store.Put(
				t.Context(),
				Key{Namespace: "default", Provider: key.Provider, Version: "v2.0.0+a", ContentID: content, Origin: origin},
				c,
			)
			g.Expect(err).NotTo(HaveOccurred())

			put = append(put, stored)
		}

		for _, want := range put {
			g.Expect(store.Find(
				t.Context(),
				FindOptions{
					Namespace:    "default",
					Provider:     key.Provider,
					Version:      "v2.0.0+a",
					Origin:       origin,
					PreferDigest: want.Digest,
				},
			)).
				To(Equal(want))
		}

		for _, other := range []FindOptions{
			{
				Namespace: "kube-system",
				Provider:  key.Provider,
				Version:   "v2.0.0+a",
			}, {Namespace: "default", Provider: "infrastructure-z", Version: "v2.0.0+a"},
			{
				Namespace: "default",
				Provider:  key.Provider,
				Version:   "v2.0.0+b",
			}, {Namespace: "default", Provider: key.Provider, Version: "v2.0.0+a", Origin: origin + "x"},
		} {
			_, err := store.Find(t.Context(), other)
			g.Expect(err).To(MatchError(ErrNotFound))
		}

		g.Expect(store.Versions(t.Context(), "default", key.Provider)).To(Equal([]string{"v1.0.0+build", "v2.0.0+a"}))
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
