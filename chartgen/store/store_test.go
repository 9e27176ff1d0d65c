package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// controlPlane is the API server of all tests in this package.
var controlPlane bedtest.Shared

func TestMain(m *testing.M) { controlPlane.Main(m) }

// newStore returns a store in a new namespace.
func newStore(t *testing.T) *Store {
	t.Helper()
	g := NewWithT(t)

	c, err := client.New(controlPlane.Get(t).Config(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}}
	g.Expect(c.Create(t.Context(), namespace)).To(Succeed())

	return &Store{Client: c, Namespace: namespace.Name}
}

// newStored returns a chart with a file.
func newStored(t *testing.T, version, content string) (*Stored, error) {
	t.Helper()

	c, err := chart.New(chart.Metadata{
		APIVersion: "v2", Name: "infrastructure-x", Version: version[1:], AppVersion: version,
	}, []chart.File{{Name: "content", Data: []byte(content)}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return New(c)
}

// put stores a chart with a file for the namespace x, which has it from an origin.
func put(t *testing.T, s *Store, content, origin string) *Stored {
	t.Helper()
	g := NewWithT(t)

	stored, err := newStored(t, "v1.0.0", content)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Put(t.Context(), stored, "x", origin, false)).To(Succeed())

	return stored
}

// configMaps returns what the store consists of.
func configMaps(t *testing.T, s *Store) []corev1.ConfigMap {
	t.Helper()

	list := &corev1.ConfigMapList{}
	NewWithT(t).Expect(s.Client.List(t.Context(), list, client.InNamespace(s.Namespace),
		client.MatchingLabels{labelComponent: componentChart})).To(Succeed())

	return list.Items
}

// noise returns text that compresses to about half of its size.
func noise(size int) string {
	random := rand.New(rand.NewPCG(1, 2))

	var out strings.Builder
	for out.Len() < size {
		fmt.Fprintf(&out, "%016x", random.Uint64())
	}

	return out.String()[:size]
}

func TestStore(t *testing.T) {
	g := NewWithT(t)
	s := newStore(t)

	_, err := s.Get(t.Context(), chart.Digest([]byte("absent")))
	g.Expect(err).To(MatchError(ErrNotFound))
	_, err = (&Store{Client: s.Client}).Get(t.Context(), chart.Digest([]byte("absent")))
	g.Expect(err).To(MatchError(ErrNotFound), "without a namespace, nothing is stored")

	stored := put(t, s, "a", "https://example.com/x")
	found, err := s.Get(t.Context(), stored.Digest)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Chart).To(Equal(stored.Chart))
	g.Expect(found.Size).To(Equal(stored.Size))

	cm := configMaps(t, s)
	g.Expect(cm).To(HaveLen(1), "one for each version")
	g.Expect(cm[0].Name).To(Equal("capstan-chart-" + strings.TrimPrefix(stored.Digest, "sha256:")))
	g.Expect(cm[0].Labels).To(HaveKeyWithValue(v1alpha2.ProviderLabel, "infrastructure-x"))
	g.Expect(cm[0].Labels).To(HaveKeyWithValue(v1alpha2.VersionLabel, "v1.0.0"))

	reference := s.Reference(stored.Digest)
	g.Expect(reference).To(Equal("configmap://" + s.Namespace + "/" + cm[0].Name))
	g.Expect(Open(s.Client, reference)).To(Equal(s))

	put(t, s, "a", "https://example.com/x")
	g.Expect(configMaps(t, s)).To(Equal(cm), "storing it again changes nothing")
}

// TestOrigins: what a namespace has fetched from an origin counts for this namespace only.
func TestOrigins(t *testing.T) {
	g := NewWithT(t)
	s := newStore(t)

	stored := put(t, s, "a", "https://example.com/x")
	g.Expect(s.Put(t.Context(), stored, "y", "https://example.com/y", false)).To(Succeed())
	g.Expect(s.Put(t.Context(), stored, "z", "", false)).To(Succeed())

	found, err := s.Get(t.Context(), stored.Digest)
	g.Expect(err).NotTo(HaveOccurred())

	for namespace, origin := range map[string]string{"x": "https://example.com/x", "y": "https://example.com/y", "z": ""} {
		g.Expect(found.IsFrom(namespace, origin)).To(BeTrue(), namespace)
	}

	g.Expect(found.IsFrom("x", "https://example.com/y")).To(BeFalse())
	g.Expect(found.IsFrom("other", "https://example.com/x")).To(BeFalse())
	g.Expect(found.IsFrom("other", "")).To(BeFalse())

	put(t, s, "a", "https://example.com/moved")

	found, err = s.Get(t.Context(), stored.Digest)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.IsFrom("x", "https://example.com/x")).To(BeFalse())
	g.Expect(found.IsFrom("x", "https://example.com/moved")).To(BeTrue())
	g.Expect(found.IsFrom("y", "https://example.com/y")).To(BeTrue())
}

func TestDamage(t *testing.T) {
	for name, damage := range map[string]func(*corev1.ConfigMap){
		"another archive": func(cm *corev1.ConfigMap) { cm.BinaryData[archiveKey] = []byte("something else") },
		"no archive":      func(cm *corev1.ConfigMap) { cm.BinaryData = nil },
		"no data":         func(cm *corev1.ConfigMap) { cm.BinaryData, cm.Data = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newStore(t)
			stored := put(t, s, "a", "https://example.com/x")

			cm := configMaps(t, s)[0]
			damage(&cm)
			g.Expect(s.Client.Update(t.Context(), &cm)).To(Succeed())

			_, err := s.Get(t.Context(), stored.Digest)
			g.Expect(err).To(MatchError(ErrNotFound))

			put(t, s, "a", "https://example.com/x")
			g.Expect(s.Get(t.Context(), stored.Digest)).To(HaveField("Chart", stored.Chart), "it is repaired")
		})
	}
}

// TestSize: the largest chart fits into a ConfigMap, together with as many origins as are kept.
func TestSize(t *testing.T) {
	g := NewWithT(t)
	s := newStore(t)

	_, err := newStored(t, "v1.0.0", noise(2<<20))
	g.Expect(err).To(BeAssignableToTypeOf(&bundle.InvalidError{}))
	g.Expect(err).To(MatchError(MatchRegexp(`^infrastructure-x-1.0.0.tgz: the chart of infrastructure-x v1.0.0 has ` +
		`1\d\d\d KiB, and a ConfigMap has room for 896 KiB; publish less`)))

	size := 2 << 20

	var stored *Stored
	for stored == nil {
		size -= 8 << 10
		stored, _ = newStored(t, "v1.0.0", noise(size))
	}

	g.Expect(stored.Size).To(BeNumerically(">", maxArchive-8<<10))
	g.Expect(s.Put(t.Context(), stored, "x", "https://example.com/x", false)).To(Succeed())

	cm := configMaps(t, s)[0]
	for i := range maxOrigins - 1 {
		cm.Data[fmt.Sprintf("%063d", i)] = digestOf("")
	}

	g.Expect(s.Client.Update(t.Context(), &cm)).To(Succeed())
	g.Expect(s.Put(t.Context(), stored, "x", "https://example.com/y", false)).To(Succeed())
	g.Expect(configMaps(t, s)[0].Data).To(HaveLen(maxOrigins))

	g.Expect(s.Put(t.Context(), stored, "z", "https://example.com/z", false)).To(Succeed())
	g.Expect(configMaps(t, s)[0].Data).To(HaveLen(1), "the others are forgotten")
}

// counting is a client that notes its requests.
type counting struct {
	client.Client

	requests *[]string
}

func (c counting) note(request string) { *c.requests = append(*c.requests, request) }

func (c counting) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	c.note("get")
	return c.Client.Get(ctx, key, o, options...)
}

func (c counting) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	c.note("create")
	return c.Client.Create(ctx, o, options...)
}

func (c counting) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	c.note("update")
	return c.Client.Update(ctx, o, options...)
}

// TestPutRequests: a new chart takes one request, and one that is known to exist is not sent.
func TestPutRequests(t *testing.T) {
	for name, c := range map[string]struct {
		stored, known bool
		requests      []string
	}{
		"new":                 {false, false, []string{"create"}},
		"of another provider": {true, false, []string{"create", "get", "update"}},
		"known":               {true, true, []string{"get"}},
		"known, but deleted":  {false, true, []string{"get", "create"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newStore(t)

			stored, err := newStored(t, "v1.0.0", "")
			g.Expect(err).NotTo(HaveOccurred())

			if c.stored {
				namespace := "other"
				if c.known {
					namespace = "x"
				}

				g.Expect(s.Put(t.Context(), stored, namespace, "", false)).To(Succeed())
			}

			var requests []string

			s.Client = counting{s.Client, &requests}
			g.Expect(s.Put(t.Context(), stored, "x", "", c.known)).To(Succeed())
			g.Expect(requests).To(Equal(c.requests))

			g.Expect(configMaps(t, s)).To(HaveLen(1))
		})
	}
}

func TestCollect(t *testing.T) {
	g := NewWithT(t)
	s := newStore(t)

	kept := put(t, s, "kept", "")
	for i := range pageSize {
		put(t, s, fmt.Sprint(i), "")
	}

	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "other"}}
	g.Expect(s.Client.Create(t.Context(), other)).To(Succeed())

	failed := errors.New("providers cannot be listed")
	g.Expect(s.Collect(t.Context(), func() (sets.Set[string], error) { return nil, failed })).To(MatchError(failed))
	g.Expect(configMaps(t, s)).To(HaveLen(pageSize + 1))

	g.Expect(s.Collect(t.Context(), func() (sets.Set[string], error) {
		put(t, s, "stored meanwhile", "")
		return sets.New(kept.Digest, "", "sha256:absent"), nil
	})).To(Succeed())
	g.Expect(configMaps(t, s)).To(HaveLen(2), "that in use and that stored meanwhile")
	g.Expect(s.Get(t.Context(), kept.Digest)).To(HaveField("Chart", kept.Chart))
	g.Expect(s.Client.Get(t.Context(), client.ObjectKeyFromObject(other), other)).To(Succeed())
}
