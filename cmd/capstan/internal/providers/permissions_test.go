package providers

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
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

func TestPrintRoles(t *testing.T) {
	g := NewWithT(t)

	var out bytes.Buffer

	o := &permissionsOptions{Options: &cli.Options{IOStreams: genericiooptions.IOStreams{Out: &out}}}
	role := &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: "installer"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
	}
	g.Expect(o.print([]client.Object{role, role})).To(Succeed())

	const want = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: installer
  namespace: tiny
rules:
- apiGroups:
  - ""
  resources:
  - secrets
  verbs:
  - get
`

	g.Expect(out.String()).To(Equal(want + want))
}
