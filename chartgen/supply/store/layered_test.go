package store

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/test/bed"
)

func TestLayered(t *testing.T) {
	server, registry := registryStore(t, bed.Distribution)
	cluster := &Cluster{Client: clusterClient(t, "operator")}
	key := Key{Namespace: "default", Provider: "infrastructure-layered", Version: "v1.0.0", ContentID: "2-abc"}
	c := testChart(t, key)
	newStore := func(readOnly bool) *Layered {
		return &Layered{Cluster: cluster, Registry: registry, ReadOnly: readOnly}
	}

	t.Cleanup(func() { _ = cluster.Delete(context.WithoutCancel(t.Context()), "default", key.Provider) })

	t.Run("a chart is stored in both", func(t *testing.T) {
		g := NewWithT(t)
		put, err := newStore(false).Put(t.Context(), key, c)
		g.Expect(err).NotTo(HaveOccurred())
		remote, err := registry.Get(t.Context(), key)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(remote.Digest).To(Equal(put.Digest))
		g.Expect(cluster.Get(t.Context(), key)).To(Equal(put))
	})
	t.Run("a chart of the registry is stored in the cluster", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(newStore(true).Delete(t.Context(), "default", key.Provider)).To(Succeed())
		got, err := newStore(true).Get(t.Context(), key)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cluster.Get(t.Context(), key)).To(Equal(got))
	})
	t.Run("nothing is pushed to a read-only registry, nor are prebuilt charts", func(t *testing.T) {
		g := NewWithT(t)
		other := key
		other.Version, other.ContentID = "v1.1.0", "2-def"
		_, err := newStore(true).Put(t.Context(), other, testChart(t, other))
		g.Expect(err).NotTo(HaveOccurred())

		fetched := testChart(t, Key{Provider: key.Provider, Version: "v1.2.0"})
		prebuilt := key
		prebuilt.Version = "v1.2.0"
		prebuilt.ContentID, err = PrebuiltContentID(fetched)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = newStore(false).Put(t.Context(), prebuilt, fetched)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(registry.Client.Tags(t.Context(), registry.Repository.Join(key.Provider))).To(Equal([]string{"1.0.0"}))
	})
	t.Run(
		"charts are used and stored while the registry is down, and pushed afterwards",
		func(t *testing.T) {
			g := NewWithT(t)

			server.Stop()

			s := newStore(false)
			_, err := s.Get(t.Context(), key)
			g.Expect(err).NotTo(HaveOccurred())

			late := key
			late.Version, late.ContentID = "v2.0.0", "2-late"
			_, err = s.Get(t.Context(), late)
			g.Expect(err).To(MatchError(ErrNotFound))
			_, err = s.Put(t.Context(), late, testChart(t, late))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.PushPending(t.Context())).To(Equal(2), "the registry may lack the chart that was used, too")

			g.Expect(server.Start(t.Context())).To(Succeed())
			g.Expect(s.PushPending(t.Context())).To(Equal(0))
			_, err = registry.Get(t.Context(), late)
			g.Expect(err).NotTo(HaveOccurred())
		},
	)
	t.Run("charts that an earlier process could not push are pushed once", func(t *testing.T) {
		g := NewWithT(t)

		server.Stop()

		early := key
		early.Version, early.ContentID = "v2.1.0", "2-early"
		before := newStore(false)
		put, err := before.Put(t.Context(), early, testChart(t, early))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(put.PushErr).To(MatchError(ContainSubstring("can be reached")))
		g.Expect(server.Start(t.Context())).To(Succeed())

		var pending atomic.Int64

		after := newStore(false)
		after.OnPending = func(charts int) { pending.Store(int64(charts)) }
		options := FindOptions{Namespace: early.Namespace, Provider: early.Provider, Version: early.Version}
		_, err = after.Find(t.Context(), options)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pending.Load()).To(Equal(int64(1)))

		ctx, cancel := context.WithCancel(t.Context())

		ended := make(chan error)
		go func() { ended <- after.Start(ctx) }()

		g.Eventually(func() error { _, err := registry.Get(t.Context(), early); return err }).
			WithTimeout(10 * time.Second).
			Should(Succeed())
		g.Eventually(pending.Load).Should(BeZero())

		_, err = after.Find(t.Context(), options)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = after.Get(t.Context(), early)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pending.Load()).To(BeZero(), "the registry is known to have it")
		cancel()
		g.Expect(<-ended).To(Succeed())
	})
	t.Run("a registry that refuses requests causes no failure", func(t *testing.T) {
		g := NewWithT(t)
		anonymous, err := oci.NewClient(oci.Options{CA: server.CA})
		g.Expect(err).NotTo(HaveOccurred())

		s := &Layered{Cluster: cluster, Registry: &Registry{Client: anonymous, Repository: registry.Repository}}
		third := key
		third.Version, third.ContentID = "v3.0.0", "2-third"
		_, err = s.Get(t.Context(), third)
		g.Expect(err).To(MatchError(ErrNotFound))
		_, err = s.Put(t.Context(), third, testChart(t, third))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cluster.Delete(t.Context(), "default", key.Provider)).To(Succeed())
		g.Expect(s.PushPending(t.Context())).To(Equal(0), "a deleted chart is not pending")
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
