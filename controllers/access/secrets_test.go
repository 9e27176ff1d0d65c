package access_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/access"
)

func TestReadSecret(t *testing.T) {
	apiReader := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: "own"},
		Data:       map[string][]byte{"A": []byte("value")},
	}).Build()
	reference := access.SecretReference{
		NamespacedName: types.NamespacedName{Namespace: "tiny", Name: "own"},
		Content:        "the keys",
		Field:          "spec.keys",
	}

	t.Run("existing", func(t *testing.T) {
		g := NewWithT(t)
		data, err := access.ReadSecret(t.Context(), apiReader, reference)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(data).To(Equal(map[string][]byte{"A": []byte("value")}))
	})

	t.Run("missing", func(t *testing.T) {
		g := NewWithT(t)
		missing := reference
		missing.Name = "absent"
		_, err := access.ReadSecret(t.Context(), apiReader, missing)
		g.Expect(err).To(HaveField("Reason", v1alpha2.SecretNotFoundReason))
		g.Expect(err).To(MatchError("Secret tiny/absent with the keys does not exist; create it, or correct spec.keys"))
	})

	t.Run("unreachable API server", func(t *testing.T) {
		g := NewWithT(t)
		unreachable := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Get: func(
			context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption,
		) error {
			return errors.New("connection refused")
		}}).Build()
		_, err := access.ReadSecret(t.Context(), unreachable, reference)
		g.Expect(err).To(MatchError("read Secret tiny/own: connection refused"))
	})
}

func TestVariablesSecret(t *testing.T) {
	g := NewWithT(t)
	provider := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: "tiny"}}

	_, found := access.VariablesSecret(provider)
	g.Expect(found).To(BeFalse())

	provider.Spec.SecretName = "own"
	reference, found := access.VariablesSecret(provider)
	g.Expect(found).To(BeTrue())
	g.Expect(reference.String()).To(Equal("tiny/own"))
}
