package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// server has Secrets, and counts how often they are read.
type server struct {
	client.Client

	reads int
	err   error
}

func newServer(objects ...client.Object) *server {
	s := &server{}
	s.Client = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption,
		) error {
			s.reads++

			if s.err != nil {
				return s.err
			}

			return c.Get(ctx, key, o, options...)
		},
	}).Build()

	return s
}

// shown is a watch that shows the metadata of a Secret; nil for none.
type shown struct {
	client.Reader

	secret *metav1.ObjectMeta
}

func (s *shown) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if s.secret == nil {
		return errors.New("the watch does not have it")
	}

	o.SetUID(s.secret.UID)
	o.SetResourceVersion(s.secret.ResourceVersion)

	return nil
}

func variables(value string) *corev1.Secret {
	s := secret("tenant")
	s.UID = "uid"
	s.Data = map[string][]byte{"TOKEN": []byte(value)}

	return s
}

func TestKeptSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		// change happens between two reads.
		change    func(*server, *shown, v1alpha2.Provider, *Readers)
		wantReads int
		want      string
	}{
		"nothing": {func(*server, *shown, v1alpha2.Provider, *Readers) {}, 1, "old"},
		"the Secret, as the watch shows": {func(s *server, w *shown, _ v1alpha2.Provider, _ *Readers) {
			update(s, "new")

			w.secret.ResourceVersion = "1001"
		}, 2, "new"},
		"the Secret, and not yet the watch": {func(s *server, _ *shown, _ v1alpha2.Provider, _ *Readers) {
			update(s, "new")
		}, 1, "old"},
		"the Secret and the spec, and not yet the watch": {func(s *server, _ *shown, p v1alpha2.Provider, _ *Readers) {
			update(s, "new")
			p.SetGeneration(2)
		}, 2, "new"},
		"the Secret and the annotation, and not yet the watch": {func(
			s *server, _ *shown, p v1alpha2.Provider, _ *Readers,
		) {
			update(s, "new")
			p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"})
		}, 2, "new"},
		"the Secret was recreated": {func(s *server, w *shown, _ v1alpha2.Provider, _ *Readers) {
			update(s, "new")

			w.secret.UID = "other"
		}, 2, "new"},
		"the watch ends": {func(_ *server, w *shown, _ v1alpha2.Provider, _ *Readers) { w.secret = nil }, 2, "old"},
		"versions that cannot be compared": {func(_ *server, w *shown, _ v1alpha2.Provider, _ *Readers) {
			w.secret.ResourceVersion = "x"
		}, 2, "old"},
		"another namespace must not be read any more": {func(_ *server, _ *shown, p v1alpha2.Provider, r *Readers) {
			r.NoCrossNamespaceRefs = true

			p.SetNamespace("other")
		}, 1, ""},
		"an account is set, which must not read it": {func(_ *server, _ *shown, p v1alpha2.Provider, r *Readers) {
			r.Impersonate = func(string) (client.Reader, error) { return forbidding("no"), nil }
			p.GetSpec().ServiceAccountName = "limited"
		}, 2, ""}, // the second read is that of the account
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			api := newServer(variables("old"))
			watch := &shown{secret: &metav1.ObjectMeta{UID: "uid", ResourceVersion: "999"}}
			readers := &Readers{APIReader: api, Kept: NewKept(api, watch)}
			p := provider("")
			key := client.ObjectKeyFromObject(secret("tenant"))

			read := func() (string, error) {
				reader, err := readers.For(p)
				g.Expect(err).NotTo(HaveOccurred())

				found := &corev1.Secret{}
				err = reader.Get(t.Context(), key, found)

				return string(found.Data["TOKEN"]), err
			}

			g.Expect(read()).To(Equal("old"))
			c.change(api, watch, p, readers)

			got, err := read()
			g.Expect(err != nil).To(Equal(c.want == ""), "%v", err)
			g.Expect(got).To(Equal(c.want))
			g.Expect(api.reads).To(Equal(c.wantReads))
		})
	}
}

// update changes the Secret in the API server.
func update(s *server, value string) {
	changed := variables(value)
	if err := s.Update(context.Background(), changed); err != nil {
		panic(err)
	}
}

func TestKeptSecretsAreNotShared(t *testing.T) {
	g := NewWithT(t)
	api := newServer(variables("old"))
	kept := NewKept(api, &shown{secret: &metav1.ObjectMeta{UID: "uid", ResourceVersion: "1"}})
	key := client.ObjectKeyFromObject(secret("tenant"))

	for range 3 {
		found := &corev1.Secret{}
		g.Expect(kept.Get(t.Context(), key, found)).To(Succeed())
		g.Expect(found.Data).To(HaveKeyWithValue("TOKEN", []byte("old")))
		found.Data["TOKEN"][0] = 'x'
	}

	g.Expect(api.reads).To(Equal(1))

	api.err = errors.New("the API server is away")

	g.Expect(live{kept}.Get(t.Context(), key, &corev1.Secret{})).To(MatchError(api.err))
	g.Expect(kept.Get(t.Context(), key, &corev1.Secret{})).To(MatchError(api.err), "what failed is read again")
}

func TestKeptSecretsAreBounded(t *testing.T) {
	g := NewWithT(t)

	var objects []client.Object

	for i := range 10 {
		s := variables(strings.Repeat("x", 1<<20))
		s.Name = fmt.Sprint(i)
		objects = append(objects, s)
	}

	kept := NewKept(newServer(objects...), &shown{})

	for _, o := range objects {
		g.Expect(kept.Get(t.Context(), client.ObjectKeyFromObject(o), &corev1.Secret{})).To(Succeed())

		total := 0
		for _, s := range kept.secrets {
			total += sizeOf(s)
		}

		g.Expect(total).To(And(Equal(kept.size), BeNumerically("<=", maxKept), BeNumerically(">", 0)))
	}
}
