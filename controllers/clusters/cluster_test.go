package clusters_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
