package providers

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestServiceAccount(t *testing.T) {
	for name, c := range map[string]struct{ flag, spec, want, err string }{
		"of the resource":         {"", "installer", "tiny/installer", ""},
		"of the flag":             {"other", "installer", "tiny/other", ""},
		"in another namespace":    {"capstan-system/capstan", "", "capstan-system/capstan", ""},
		"unknown":                 {"", "", "", "the ServiceAccount is unknown: set --service-account"},
		"a namespace and no name": {"tiny/", "", "", "the ServiceAccount is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: "cluster-api"}}
			p.Spec.ServiceAccountName = c.spec
			o := &permissionsOptions{account: c.flag}

			account, err := o.serviceAccount(p)
			if c.err != "" {
				g.Expect(err).To(MatchError(HavePrefix(c.err)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(account.String()).To(Equal(c.want))
		})
	}
}
