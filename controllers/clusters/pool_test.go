package clusters_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/problem"
)

// A busy machine may need more than the second that Gomega waits by default.
func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(time.Minute)
	m.Run()
}

// target returns the target of a provider, which must have one.
func target(t *testing.T, pool *clusters.Pool, p v1alpha2.Provider) *clusters.Target {
	t.Helper()

	found, err := pool.For(t.Context(), p)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return found
}

func TestAccount(t *testing.T) {
	pool, _ := newPool(t, secret("there", kubeConfig(serve(t, "there"))))

	for name, c := range map[string]struct {
		defaultAccount string
		provider       v1alpha2.Provider
		want           string
	}{
		"the operator's own":          {"", provider("a", "", ""), ""},
		"of the resource":             {"", provider("a", "installer", ""), "system:serviceaccount:tiny:installer"},
		"the default":                 {"default", provider("a", "", ""), "system:serviceaccount:tiny:default"},
		"of the resource, by default": {"default", provider("a", "own", ""), "system:serviceaccount:tiny:own"},
		"in a remote cluster":         {"", provider("a", "installer", "there"), "system:serviceaccount:tiny:installer"},
	} {
		t.Run(name, func(t *testing.T) {
			pool.Readers.DefaultServiceAccount = c.defaultAccount
			NewWithT(t).Expect(target(t, pool, c.provider).Account).To(Equal(c.want))
		})
	}
}

func TestTargetsAreShared(t *testing.T) {
	g := NewWithT(t)
	pool, _ := newPool(
		t,
		secret("there", kubeConfig(serve(t, "there"))),
		secret("elsewhere", kubeConfig(serve(t, "elsewhere"))),
	)

	local := target(t, pool, provider("a", "", ""))
	g.Expect(local).To(BeIdenticalTo(pool.Local.OwnTarget()))
	g.Expect(local.Remote).To(BeFalse())

	installer := target(t, pool, provider("a", "installer", ""))
	g.Expect(installer).NotTo(BeIdenticalTo(local))
	g.Expect(installer.Remote).To(BeFalse())
	g.Expect(installer.Health).To(BeIdenticalTo(local.Health), "targets in one cluster share its watches")
	g.Expect(installer.APIReader).To(BeIdenticalTo(local.APIReader))
	g.Expect(target(t, pool, provider("b", "installer", ""))).To(BeIdenticalTo(installer))
	g.Expect(pool.Remotes()).To(Equal(0))

	there := target(t, pool, provider("c", "", "there"))
	g.Expect(there.Remote).To(BeTrue())
	g.Expect(there.Health).NotTo(BeIdenticalTo(local.Health))
	g.Expect(target(t, pool, provider("d", "", "there"))).To(BeIdenticalTo(there))
	g.Expect(target(t, pool, provider("e", "installer", "there")).Health).To(BeIdenticalTo(there.Health))
	g.Expect(pool.Remotes()).To(Equal(1))

	g.Expect(target(t, pool, provider("f", "", "elsewhere"))).NotTo(BeIdenticalTo(there))
	g.Expect(pool.Remotes()).To(Equal(2))
}

func TestForget(t *testing.T) {
	g := NewWithT(t)
	pool, _ := newPool(t, secret("there", kubeConfig(serve(t, "there"))))
	first, second := provider("a", "", "there"), provider("b", "installer", "there")
	before := target(t, pool, first)
	target(t, pool, second)

	pool.Forget(first)
	g.Expect(pool.Remotes()).To(Equal(1), "another resource still needs it")

	pool.Forget(second)
	g.Expect(pool.Remotes()).To(Equal(0))

	pool.Forget(second)
	pool.Forget(provider("unknown", "", ""))

	g.Expect(target(t, pool, first)).NotTo(BeIdenticalTo(before), "it is connected again")
	g.Expect(pool.Remotes()).To(Equal(1))
}

func TestForgetAccount(t *testing.T) {
	g := NewWithT(t)
	pool, _ := newPool(t, secret("there", kubeConfig(serve(t, "there"))))

	for _, cluster := range []string{"", "there"} {
		first, second := provider("a", "installer", cluster), provider("b", "installer", cluster)
		other := provider("c", "", cluster)

		before := target(t, pool, first)
		target(t, pool, second)
		target(t, pool, other)

		pool.Forget(first)
		g.Expect(target(t, pool, second)).To(BeIdenticalTo(before), "another resource still uses the account")

		second.GetSpec().ServiceAccountName = "renamed"
		target(t, pool, second)

		second.GetSpec().ServiceAccountName = "installer"
		g.Expect(target(t, pool, second)).NotTo(BeIdenticalTo(before), "the target was dropped")
	}
}

func TestChangedKubeConfig(t *testing.T) {
	t.Run("another Secret content", func(t *testing.T) {
		g := NewWithT(t)
		pool, c := newPool(t, secret("there", kubeConfig(serve(t, "there"))))
		first, second := provider("a", "", "there"), provider("b", "", "there")
		before := target(t, pool, first)
		target(t, pool, second)

		g.Expect(c.Update(t.Context(), secret("there", kubeConfig(serve(t, "moved"))))).To(Succeed())

		moved := target(t, pool, first)
		g.Expect(moved).NotTo(BeIdenticalTo(before))
		g.Expect(pool.Remotes()).To(Equal(2), "the second resource is still at the old address")

		g.Expect(target(t, pool, second)).To(BeIdenticalTo(moved))
		g.Expect(pool.Remotes()).To(Equal(1))
	})

	t.Run("no kubeConfig any more", func(t *testing.T) {
		g := NewWithT(t)
		pool, _ := newPool(t, secret("there", kubeConfig(serve(t, "there"))))
		target(t, pool, provider("a", "", "there"))

		g.Expect(target(t, pool, provider("a", "", ""))).To(BeIdenticalTo(pool.Local.OwnTarget()))
		g.Expect(pool.Remotes()).To(Equal(0))
	})
}

func TestRefusedKubeConfig(t *testing.T) {
	for name, c := range map[string]struct {
		secret  *corev1.Secret
		message string
	}{
		"a Secret that does not exist": {
			secret("other", kubeConfig(serve(t, "there"))),
			"Secret tiny/there of spec.kubeConfig does not exist; create it",
		},
		"a missing key": {
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: "there"}},
			"Secret tiny/there of spec.kubeConfig has no key value; add it",
		},
		"no kubeconfig": {
			secret("there", "hunter2: ["),
			"key value of Secret tiny/there of spec.kubeConfig: it is not a usable kubeconfig; it must contain a server " +
				"and its credentials inline",
		},
		"credentials in the server": {
			secret("there", kubeConfig("https://a:hunter2@there.example.com")),
			"key value of Secret tiny/there of spec.kubeConfig: server must be a URL without credentials; move them to the user",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pool, _ := newPool(t, c.secret)

			_, err := pool.For(t.Context(), provider("a", "", "there"))
			g.Expect(err).To(HaveField("Reason", v1alpha2.KubeConfigErrorReason))
			g.Expect(err).To(MatchError(HavePrefix(c.message)))
			g.Expect(err).NotTo(MatchError(ContainSubstring("hunter2")))
			g.Expect(pool.Remotes()).To(Equal(0))
		})
	}

	t.Run("an address that only the operator can reach", func(t *testing.T) {
		const refused = ", to which the operator does not connect; use another " +
			"address, or allow it with the operator's flag --allowed-source-addresses"

		inner := newSwitched(t)
		_, port, err := net.SplitHostPort(inner.Listener.Addr().String())
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		for name, server := range map[string]string{
			"as such":       inner.URL,
			"behind a name": "http://localhost:" + port,
			"as a proxy":    "http://192.0.2.1\", proxy-url: \"" + inner.URL,
		} {
			g := NewWithT(t)
			pool, _ := newPool(t, secret("there", strings.ReplaceAll(kubeConfig(server), `\"`, `"`)))
			pool.Addresses = &transport.Guard{}

			_, err := pool.For(t.Context(), provider("a", "", "there"))
			g.Expect(err).To(HaveField("Reason", v1alpha2.KubeConfigErrorReason), name)
			g.Expect(err).To(MatchError(ContainSubstring(refused)), name)
		}

		NewWithT(t).Expect(inner.requests()).To(BeZero())
	})

	t.Run("a resource in deletion names the finalizer", func(t *testing.T) {
		g := NewWithT(t)
		pool, _ := newPool(t)
		deleted := provider("a", "", "there")
		now := metav1.Now()
		deleted.SetDeletionTimestamp(&now)

		_, err := pool.For(t.Context(), deleted)
		g.Expect(err).To(MatchError(HaveSuffix(
			"does not exist; create it, or, if that cluster no longer exists, remove the finalizer " +
				v1alpha2.Finalizer + " from this resource")))
	})

	t.Run("a Secret that the account must not read", func(t *testing.T) {
		g := NewWithT(t)
		pool, _ := newPool(t, secret("there", kubeConfig(serve(t, "there"))))
		pool.Readers.Impersonate = func(string) (client.Reader, error) {
			return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Get: func(
				context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption,
			) error {
				return apierrors.NewForbidden(corev1.Resource("secrets"), "there", nil)
			}}).Build(), nil
		}

		_, err := pool.For(t.Context(), provider("a", "installer", "there"))
		g.Expect(err).To(MatchError(ContainSubstring("system:serviceaccount:tiny:installer does not exist and may not get " +
			"Secret tiny/there, which the resource names")))
		g.Expect(pool.Remotes()).To(Equal(0))
	})

	t.Run("a Secret that cannot be read is not the resource's fault", func(t *testing.T) {
		g := NewWithT(t)
		pool, _ := newPool(t)
		pool.Readers.APIReader = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Get: func(
			context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption,
		) error {
			return errors.New("connection refused")
		}}).Build()

		_, err := pool.For(t.Context(), provider("a", "", "there"))
		g.Expect(err).To(MatchError("read Secret tiny/there: connection refused"))
		g.Expect(problem.Of(err)).To(BeNil())
	})
}

func TestSlowClusterBlocksNoOther(t *testing.T) {
	g := NewWithT(t)
	slow := newSwitched(t)
	slow.answer(0)

	pool, _ := newPool(t, secret("slow", kubeConfig(slow.URL)), secret("there", kubeConfig(serve(t, "there"))))
	ended := make(chan error)

	go func() {
		_, err := pool.For(t.Context(), provider("a", "", "slow"))
		ended <- err
	}()

	g.Eventually(slow.requests).Should(Equal(1))
	g.Expect(target(t, pool, provider("b", "", "")).Remote).To(BeFalse())
	g.Expect(target(t, pool, provider("c", "", "there")).Remote).To(BeTrue())
	g.Expect(ended).NotTo(Receive())

	slow.answer(http.StatusOK)
	g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	g.Expect(pool.Remotes()).To(Equal(2))
}
