package store

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/test/bed"
)

func TestLayered(t *testing.T) {
	server, registry := registryStore(t, bed.Distribution)
	cluster := &Cluster{Client: clusterClient(t, "operator")}
	key := Key{
		Namespace: "default", Provider: "infrastructure-layered", Version: "v1.0.0", ContentID: "2-abc", FromCatalog: true,
	}
	tags := func(t *testing.T) []string {
		t.Helper()

		found, err := registry.Client.Tags(t.Context(), registry.Repository.Join(key.Provider))
		if oci.IsReason(err, oci.NotFound) {
			return nil
		}

		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		return found
	}

	t.Cleanup(func() { _ = cluster.Delete(context.WithoutCancel(t.Context()), "default", key.Provider) })

	t.Run("charts that are not from the catalog, or were fetched as charts, are not pushed", func(t *testing.T) {
		g := NewWithT(t)
		s := &Layered{Store: cluster, Registry: registry}

		foreign := key
		foreign.Version, foreign.ContentID, foreign.FromCatalog = "v0.1.0", "2-foreign", false
		put, err := s.Put(t.Context(), foreign, testChart(t, foreign))
		g.Expect(err).NotTo(HaveOccurred())

		prebuilt := key
		prebuilt.Version, prebuilt.ContentID = "v0.2.0", put.Digest
		_, err = s.Put(t.Context(), prebuilt, testChart(t, prebuilt))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(tags(t)).To(BeEmpty())

		for _, stored := range []Key{foreign, prebuilt} {
			_, err = s.Get(t.Context(), stored)
			g.Expect(err).NotTo(HaveOccurred())
		}

		_, err = s.Find(t.Context(), FindOptions{
			Namespace: key.Namespace, Provider: key.Provider, Version: foreign.Version, Digest: put.Digest,
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.PushPending(t.Context())).To(BeZero())
		g.Expect(tags(t)).To(BeEmpty(), "nothing that was read from the cluster is pushed")
	})
	t.Run("a chart from the catalog is stored in both", func(t *testing.T) {
		g := NewWithT(t)
		s := &Layered{Store: cluster, Registry: registry}
		put, err := s.Put(t.Context(), key, testChart(t, key))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(put.PushErr).NotTo(HaveOccurred())

		pushed, err := registry.Client.PullChart(t.Context(), registry.Repository.Join(key.Provider).WithTag("1.0.0"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pushed.Digest).To(Equal(put.Digest))
		g.Expect(cluster.Get(t.Context(), key)).To(Equal(put))
	})
	t.Run("a chart in the registry is not taken for one in the cluster", func(t *testing.T) {
		g := NewWithT(t)
		s := &Layered{Store: cluster, Registry: registry}
		elsewhere := key
		elsewhere.Namespace = "kube-system"
		_, err := s.Get(t.Context(), elsewhere)
		g.Expect(err).To(MatchError(ErrNotFound))
	})
	t.Run("charts are stored while the registry is down, and pushed afterwards", func(t *testing.T) {
		g := NewWithT(t)

		server.Stop()

		var pending atomic.Int64

		s := &Layered{Store: cluster, Registry: registry, OnPending: func(charts int) { pending.Store(int64(charts)) }}
		late := key
		late.Version, late.ContentID = "v2.0.0", "2-late"
		put, err := s.Put(t.Context(), late, testChart(t, late))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(put.PushErr).To(MatchError(And(ContainSubstring("can be reached"), HaveSuffix("; the push is retried"))))
		g.Expect(s.PushPending(t.Context())).To(Equal(1))
		g.Expect(pending.Load()).To(Equal(int64(1)))

		ctx, cancel := context.WithCancel(t.Context())

		ended := make(chan error)
		go func() { ended <- s.Start(ctx) }()

		g.Expect(server.Start(t.Context())).To(Succeed())

		next := key
		next.Version, next.ContentID = "v2.1.0", "2-next"
		_, err = s.Put(t.Context(), next, testChart(t, next))
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(pending.Load).WithTimeout(10*time.Second).Should(BeZero(), "the registry works again")
		g.Expect(tags(t)).To(ConsistOf("1.0.0", "2.0.0", "2.1.0"))
		cancel()
		g.Expect(<-ended).To(Succeed())
	})
	t.Run("a registry that refuses requests causes no failure", func(t *testing.T) {
		g := NewWithT(t)
		anonymous, err := oci.NewClient(oci.Options{CA: server.CA})
		g.Expect(err).NotTo(HaveOccurred())

		s := &Layered{Store: cluster, Registry: &Registry{Client: anonymous, Repository: registry.Repository}}
		third := key
		third.Version, third.ContentID = "v3.0.0", "2-third"
		put, err := s.Put(t.Context(), third, testChart(t, third))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(oci.IsReason(put.PushErr, oci.Denied)).To(BeTrue(), "%v", put.PushErr)
		g.Expect(s.PushPending(t.Context())).To(Equal(1))
	})
	t.Run("a chart whose tags have other content is not retried", func(t *testing.T) {
		g := NewWithT(t)
		s := &Layered{Store: cluster, Registry: registry}

		for _, name := range []string{"a", "b"} {
			_, err := s.Put(t.Context(), key, testChart(t, key, chart.File{Name: name, Data: []byte("x")}))
			g.Expect(err).NotTo(HaveOccurred())
		}

		put, err := s.Put(t.Context(), key, testChart(t, key, chart.File{Name: "c", Data: []byte("x")}))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(put.PushErr).To(MatchError(ContainSubstring("never overwritten")))
		g.Expect(s.PushPending(t.Context())).To(BeZero())
	})
}

func TestPrune(t *testing.T) {
	g := NewWithT(t)
	cluster := &Cluster{Client: clusterClient(t, "operator")}
	digests := map[string]string{}
	keys := map[string]Key{}

	for _, version := range []string{"v1.0.0", "v1.1.0", "v1.2.0"} {
		key := Key{Namespace: "default", Provider: "infrastructure-prune", Version: version, ContentID: "2-" + version}
		put, err := cluster.Put(t.Context(), key, testChart(t, key))
		g.Expect(err).NotTo(HaveOccurred())

		digests[version] = put.Digest
		keys[version] = key
	}

	other := Key{Namespace: "default", Provider: "infrastructure-prune-other", Version: "v1.0.0", ContentID: "2-o"}
	_, err := cluster.Put(t.Context(), other, testChart(t, other))
	g.Expect(err).NotTo(HaveOccurred())

	keep := []string{digests["v1.0.0"], digests["v1.2.0"]}

	g.Expect(cluster.Prune(t.Context(), "default", "infrastructure-prune", keep, time.Now().Add(-time.Hour))).To(Succeed())

	for _, key := range keys {
		_, err := cluster.Get(t.Context(), key)
		g.Expect(err).NotTo(HaveOccurred(), "a new chart stays")
	}

	g.Expect(cluster.Prune(t.Context(), "default", "infrastructure-prune", keep, time.Now().Add(time.Hour))).To(Succeed())
	_, err = cluster.Get(t.Context(), keys["v1.1.0"])
	g.Expect(err).To(MatchError(ErrNotFound))

	for _, key := range []Key{keys["v1.0.0"], keys["v1.2.0"], other} {
		_, err := cluster.Get(t.Context(), key)
		g.Expect(err).NotTo(HaveOccurred())
	}
}
