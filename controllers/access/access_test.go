package access

import (
	"context"
	"testing"

	"github.com/fluxcd/pkg/runtime/acl"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// provider returns a provider in the namespace "tenant" that runs as an account; empty for none.
func provider(account string) v1alpha2.Provider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "aws"}}
	p.Spec.ServiceAccountName = account

	return p
}

func secret(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}}
}

// forbidding returns a reader that is refused every request for Secrets, with a message.
func forbidding(message string) client.Reader {
	forbidden := func() error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", errText(message))
	}

	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden()
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return forbidden()
		},
	}).Build()
}

type errText string

func (e errText) Error() string { return string(e) }

func TestAccount(t *testing.T) {
	for name, c := range map[string]struct{ account, defaultAccount, want string }{
		"none":                      {"", "", ""},
		"of the resource":           {"installer", "", "system:serviceaccount:tenant:installer"},
		"the default":               {"", "limited", "system:serviceaccount:tenant:limited"},
		"of the resource, not both": {"installer", "limited", "system:serviceaccount:tenant:installer"},
	} {
		readers := &Readers{DefaultServiceAccount: c.defaultAccount}
		NewWithT(t).Expect(readers.User(provider(c.account))).To(Equal(c.want), name)
	}
}

func TestReadersUseTheAccount(t *testing.T) {
	g := NewWithT(t)
	asked := ""
	installer := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "installer"}}
	own := fake.NewClientBuilder().WithObjects(secret("tenant"), installer).Build()
	readers := &Readers{
		APIReader: own,
		Impersonate: func(user string) (client.Reader, error) {
			asked = user
			return forbidding("no"), nil
		},
	}
	key := client.ObjectKeyFromObject(secret("tenant"))

	reader, err := readers.For(provider(""))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(reader.Get(t.Context(), key, &corev1.Secret{})).To(Succeed())
	g.Expect(reader.List(t.Context(), &corev1.SecretList{})).To(Succeed())
	g.Expect(asked).To(BeEmpty())

	reader, err = readers.For(provider("installer"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(asked).To(Equal("system:serviceaccount:tenant:installer"))

	err = reader.Get(t.Context(), key, &corev1.Secret{})
	g.Expect(err).To(HaveField("Reason", v1alpha2.MissingPermissionsReason))
	g.Expect(err).To(MatchError("system:serviceaccount:tenant:installer may not get Secret tenant/s, which the resource " +
		"names; grant it get for secrets in namespace tenant, or change the resource"))
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue())

	err = reader.List(t.Context(), &corev1.SecretList{}, client.InNamespace("tenant"))
	g.Expect(err).To(MatchError(HavePrefix("system:serviceaccount:tenant:installer may not list secrets, which")))

	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	g.Expect(reader.List(t.Context(), list, client.InNamespace("tenant"))).
		To(MatchError(ContainSubstring("grant it list for configmaps in namespace tenant")))

	reader, err = readers.For(provider("absent"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(reader.Get(t.Context(), key, &corev1.Secret{})).
		To(MatchError(HavePrefix("system:serviceaccount:tenant:absent does not exist and may not get Secret tenant/s")))

	readers.Impersonate = nil
	reader, err = readers.For(provider("installer"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(reader.Get(t.Context(), key, &corev1.Secret{})).To(Succeed(), "the command line has only its user")
}

func TestImpersonationThatIsNotAllowed(t *testing.T) {
	g := NewWithT(t)
	readers := &Readers{Impersonate: func(string) (client.Reader, error) {
		return forbidding(`User "operator" cannot impersonate resource "serviceaccounts"`), nil
	}}

	reader, err := readers.For(provider("installer"))
	g.Expect(err).NotTo(HaveOccurred())

	err = reader.Get(t.Context(), client.ObjectKeyFromObject(secret("tenant")), &corev1.Secret{})
	g.Expect(err).To(MatchError(ContainSubstring("cannot impersonate")))
	g.Expect(problem.Of(err)).To(BeNil(), "the account's permissions are not the problem")
}

func TestNoCrossNamespaceRefs(t *testing.T) {
	own := fake.NewClientBuilder().WithObjects(secret("tenant"), secret("other")).Build()

	for name, c := range map[string]struct {
		refuse    bool
		namespace string
		refused   bool
	}{
		"the resource's namespace":             {true, "tenant", false},
		"another namespace":                    {true, "other", true},
		"another namespace without the option": {false, "other", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			reader, err := (&Readers{APIReader: own, NoCrossNamespaceRefs: c.refuse}).For(provider(""))
			g.Expect(err).NotTo(HaveOccurred())

			get := reader.Get(t.Context(), client.ObjectKeyFromObject(secret(c.namespace)), &corev1.Secret{})
			list := reader.List(t.Context(), &corev1.SecretList{}, client.InNamespace(c.namespace))

			if !c.refused {
				g.Expect(get).To(Succeed())
				g.Expect(list).To(Succeed())

				return
			}

			g.Expect(acl.IsAccessDenied(get)).To(BeTrue())
			g.Expect(get).To(MatchError("Secret other/s is in another namespace than the resource that names it, which " +
				"--no-cross-namespace-refs does not allow; move it to namespace tenant and correct the resource"))
			g.Expect(acl.IsAccessDenied(list)).To(BeTrue())
		})
	}
}
