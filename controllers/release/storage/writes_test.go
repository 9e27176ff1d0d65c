package storage

import (
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/capstan-project/capstan/chartgen/helm"
)

// storeOf returns a store of revisions with these statuses and manifests, the oldest first.
func storeOf(t *testing.T, secrets corev1.SecretInterface, revisions ...[2]string) *Store {
	t.Helper()

	for i, r := range revisions {
		rel := &helm.Release{
			Name: "x", Namespace: "ns", Version: i + 1, Manifest: r[1], Info: &helm.Info{Status: helm.Status(r[0])},
		}
		NewWithT(t).Expect(helm.NewRecords(secrets).Create(rel)).To(Succeed())
	}

	store := New(secrets, types.NamespacedName{Namespace: "ns", Name: "x"})
	NewWithT(t).Expect(store.Load(t.Context())).To(Succeed())

	return store
}

// TestLimit checks that the limit of the history deletes the oldest revisions, but none that is needed.
func TestLimit(t *testing.T) {
	for name, test := range map[string]struct {
		revisions [][2]string
		limit     int
		want      []int
	}{
		"none is too old": {[][2]string{{"superseded", "a"}, {"deployed", "b"}}, 3, []int{1, 2}},
		"old ones":        {[][2]string{{"superseded", "a"}, {"superseded", "b"}, {"deployed", "c"}}, 2, []int{3}},
		"the deployed one": {
			[][2]string{{"superseded", "a"}, {"deployed", "b"}, {"failed", "c"}, {"failed", "d"}}, 1, []int{2, 3, 4},
		},
		"attempts of the same": {
			[][2]string{{"deployed", "a"}, {"failed", "b"}, {"failed", "b"}, {"failed", "b"}}, 2, []int{1, 4},
		},
		"before the complete one": {
			[][2]string{{"failed", "a"}, {"superseded", "b"}, {"failed", "c"}}, 1, []int{2, 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			store := storeOf(t, fake.NewClientset().CoreV1().Secrets("ns"), test.revisions...)
			g.Expect(store.Limit(test.limit)).To(Succeed())
			g.Expect(store.Readable()).To(Equal(test.want))
		})
	}
}

// TestLimitKeepsFewAttempts: no number of attempts makes the history too large to be read.
func TestLimitKeepsFewAttempts(t *testing.T) {
	g := NewWithT(t)

	var attempts [][2]string
	for i := range MaxRecords - 1 {
		attempts = append(attempts, [2]string{"failed", "a: " + string(rune('a'+i%26)) + string(rune('a'+i/26))})
	}

	store := storeOf(t, fake.NewClientset().CoreV1().Secrets("ns"), attempts...)
	g.Expect(store.Limit(10)).To(Succeed())
	g.Expect(len(store.Readable())).To(BeNumerically("<=", maxIncomplete+1))
}

// TestEnd checks which revision is deployed after an action.
func TestEnd(t *testing.T) {
	g := NewWithT(t)
	secrets := fake.NewClientset().CoreV1().Secrets("ns")
	store := storeOf(t, secrets, [2]string{"deployed", "a"}, [2]string{"failed", "b"}, [2]string{"deployed", "c"})

	rel := &helm.Release{Name: "x", Namespace: "ns", Version: 4, Info: &helm.Info{Status: helm.StatusPendingUpgrade}}
	g.Expect(store.Create(rel)).To(Succeed())
	g.Expect(store.Supersede(4)).To(Succeed())
	g.Expect(store.End(rel, Outcome{Description: "Upgrade complete", Adopted: 2})).To(Succeed())

	var statuses []string

	for number := 1; number <= 4; number++ {
		secret, err := secrets.Get(t.Context(), helm.RecordName("x", number), metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())

		statuses = append(statuses, secret.Labels[statusLabel])
	}

	g.Expect(statuses).To(Equal([]string{"superseded", "failed", "superseded", "deployed"}))
	g.Expect(rel.Info.Description).To(Equal("Upgrade complete; adopted 2 existing objects"))
}

// TestOversizeRecord: a record that could not be written again after the objects were applied is not created.
func TestOversizeRecord(t *testing.T) {
	g := NewWithT(t)
	secrets := fake.NewClientset().CoreV1().Secrets("ns")
	store := storeOf(t, secrets)

	random := make([]byte, 800<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)

	rel := &helm.Release{
		Name: "x", Namespace: "ns", Version: 1, Info: &helm.Info{}, Config: map[string]any{"large": random},
	}
	g.Expect(store.Create(rel)).To(MatchError(MatchRegexp(
		`^Helm's record in Secret ns/sh\.helm\.release\.v1\.x\.v1 could not be stored: it takes \d+ KiB, and a Secret ` +
			`holds 1024 KiB; reduce the chart`)))
	g.Expect(secrets.List(t.Context(), metav1.ListOptions{})).To(HaveField("Items", BeEmpty()))
}
