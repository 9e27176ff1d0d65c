package usage

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUsageMessage(t *testing.T) {
	found := func(name string, count int64, examples ...string) Kind {
		return Kind{Name: name, Count: count, Examples: examples}
	}
	for name, c := range map[string]struct {
		kinds []Kind
		want  string
	}{
		"one object": {
			[]Kind{found("as.x", 1, "default/a")}, "1 object still exists: 1 as.x (e.g. default/a)",
		},
		"objects that must not be named": {[]Kind{found("as.x", 2)}, "2 objects still exist: 2 as.x"},
		"several kinds": {
			[]Kind{found("as.x", 10, "default/a", "default/b"), found("bs.x", 2, "c")},
			"12 objects still exist: 10 as.x (e.g. default/a, default/b), 2 bs.x (e.g. c)",
		},
		"objects of one Cluster": {
			[]Kind{{Name: "as.x", Count: 1, Examples: []string{"default/a"}, Clusters: []string{"default/one"}}},
			"1 object still exists: 1 as.x (e.g. default/a) of Cluster default/one",
		},
		"objects of several Clusters": {
			[]Kind{{Name: "as.x", Count: 2, Examples: []string{"default/a"}, Clusters: []string{"default/one", "default/two"}}},
			"2 objects still exist: 2 as.x (e.g. default/a) of Clusters default/one, default/two",
		},
		"objects of many Clusters": {
			[]Kind{{Name: "as.x", Count: 3, Clusters: []string{"a/1", "a/2", "a/3"}}},
			"3 objects still exist: 3 as.x of Clusters a/1, a/2 and others",
		},
		"Clusters": {
			[]Kind{{
				Name: "clusters.cluster.x-k8s.io", Count: 1, Examples: []string{"default/one"}, Clusters: []string{"default/one"},
			}},
			"1 object still exists: 1 clusters.cluster.x-k8s.io (e.g. default/one)",
		},
		"unknown": {[]Kind{{Name: "as.x", Problem: "no answer"}}, "it is unknown whether there are as.x (no answer)"},
		"both": {
			[]Kind{found("as.x", 1, "default/a"), {Name: "bs.x", Problem: "no answer"}},
			"1 object still exists: 1 as.x (e.g. default/a); it is unknown whether there are bs.x (no answer)",
		},
		"many kinds": {
			[]Kind{
				found("a", 1, "1"),
				found("b", 1, "1"),
				found("c", 1, "1"),
				found("d", 1, "1"),
				found("e", 1, "1"),
				found("f", 1, "1"),
				found("g", 1, "1"),
			},
			"7 objects still exist: 1 a (e.g. 1), 1 b (e.g. 1), 1 c (e.g. 1), 1 d (e.g. 1), 1 e (e.g. 1) " +
				"and objects of 2 more kinds",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			u := Usage(c.kinds)
			g.Expect(u.Message()).To(Equal(c.want))
			g.Expect(u.Unused()).To(BeFalse())
		})
	}

	NewWithT(t).Expect(Usage{}.Unused()).To(BeTrue())
}

func TestKindExamples(t *testing.T) {
	g := NewWithT(t)
	k := &Kind{}
	now := metav1.Now()

	k.add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "global"}})
	k.add(
		&metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "going", DeletionTimestamp: &now, Finalizers: []string{"x/y"}},
		},
	)
	k.add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "third"}})
	g.Expect(k.Count).To(BeEquivalentTo(3))
	g.Expect(k.Examples).To(Equal([]string{"global", "ns/going (being deleted, blocked by its finalizers x/y)"}))
}

func TestKindClusters(t *testing.T) {
	g := NewWithT(t)
	add := func(k *Kind, namespace, name, cluster string) {
		k.add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"cluster.x-k8s.io/cluster-name": cluster},
		}})
	}

	machines := &Kind{Name: "awsmachines.infrastructure.cluster.x-k8s.io"}
	add(machines, "b", "x", "one")
	add(machines, "a", "x", "two")
	add(machines, "b", "y", "one")
	add(machines, "a", "z", "")
	add(machines, "", "global", "one") // Clusters have a namespace
	g.Expect(machines.Clusters).To(Equal([]string{"a/two", "b/one"}))

	clusters := &Kind{Name: "clusters.cluster.x-k8s.io"}
	add(clusters, "default", "prod", "other")
	g.Expect(clusters.Clusters).To(Equal([]string{"default/prod"}))

	many := &Kind{}
	for i := range 3 * maxClusters {
		add(many, "default", "x", strings.Repeat("c", i+1))
	}

	g.Expect(many.Clusters).To(HaveLen(maxClusters))
	g.Expect(many.Count).To(BeEquivalentTo(3 * maxClusters))
}
