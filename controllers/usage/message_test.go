package usage

import (
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
			u := &Usage{Kinds: c.kinds}
			g.Expect(u.Message()).To(Equal(c.want))
			g.Expect(u.Unused()).To(BeFalse())
		})
	}

	NewWithT(t).Expect((&Usage{}).Unused()).To(BeTrue())
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
