package store

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

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
