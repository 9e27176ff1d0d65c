package clusters_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestImpersonation(t *testing.T) {
	g := NewWithT(t)
	server := newAPIServer(t)
	pool, _ := newPool(t)
	pool.Local = connect(t, server.URL, nil)

	own := target(t, pool, provider("a", "", ""))

	g.Expect(server.seen()).To(HaveLen(1), "the first one identifies the cluster")

	installer := target(t, pool, provider("b", "installer", ""))

	g.Expect(server.seen()).To(BeEmpty(), "another one costs no request")

	const account = "system:serviceaccount:tiny:installer"

	key := client.ObjectKey{Namespace: "tiny", Name: "a"}

	for _, c := range []struct {
		name   string
		reader client.Reader
		want   string
	}{
		{"the own client", own.Client, ""},
		{"the own reader", own.APIReader, ""},
		{"the account's client", installer.Client, account},
		{"the account's reader", installer.APIReader, ""},
	} {
		g.Expect(c.reader.Get(t.Context(), key, &corev1.ConfigMap{})).To(Succeed(), c.name)
		g.Expect(server.seen()).To(Equal([]string{c.want}), c.name)
	}
}

func TestOnlyRecordsAreMarkedAsTheOperators(t *testing.T) {
	const account = "system:serviceaccount:tiny:installer"

	server := newAPIServer(t)
	pool, _ := newPool(t, secret("there", kubeConfig(server.URL)))
	pool.Local = connect(t, server.URL, nil)
	configMaps := corev1.SchemeGroupVersion.WithResource("configmaps")

	for name, c := range map[string]struct {
		provider        v1alpha2.Provider
		records, others string
	}{
		"by the operator itself":           {provider("a", "", ""), "", ""},
		"as an account":                    {provider("a", "installer", ""), account + markedAsOperator, account},
		"as an account in another cluster": {provider("a", "installer", "there"), account, account},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			releases := target(t, pool, c.provider).Releases

			server.seen()

			_ = releases.DeleteHistory(t.Context(), types.NamespacedName{Namespace: "tiny", Name: "a"})

			g.Expect(server.seen()).To(ContainElement(c.records))

			_, _ = releases.Metadata().Resource(configMaps).Namespace("tiny").Get(t.Context(), "a", metav1.GetOptions{})

			g.Expect(server.seen()).To(ContainElement(c.others))
		})
	}
}
