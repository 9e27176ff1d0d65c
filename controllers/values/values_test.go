package values_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/values"
)

func TestVariables(t *testing.T) {
	reader := fake.NewClientBuilder().WithObjects(
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: "own"},
			Data:       map[string][]byte{"A": []byte("secret"), "EMPTY": nil},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "own"},
			Data:       map[string][]byte{"A": []byte("far")},
		},
	).Build()

	for name, c := range map[string]struct {
		spec    string
		want    map[string]string
		refused string
	}{
		"none":             {spec: `{}`, want: map[string]string{}},
		"only in the spec": {spec: `{variables: {A: plain}}`, want: map[string]string{"A": "plain"}},
		"in spec and Secret": {
			spec: `{variables: {A: plain, B: plain}, secretName: own}`,
			want: map[string]string{"A": "secret", "B": "plain", "EMPTY": ""},
		},
		"in a Secret in another namespace": {
			spec: `{configSecret: {name: own, namespace: elsewhere}}`,
			want: map[string]string{"A": "far"},
		},
		"in a Secret of secretName that does not exist": {
			spec:    `{secretName: absent}`,
			refused: "Secret tiny/absent with the provider's variables does not exist; create it, or correct spec.secretName",
		},
		"in a Secret of configSecret that does not exist": {
			spec:    `{configSecret: {name: absent}}`,
			refused: "Secret tiny/absent with the provider's variables does not exist; create it, or correct spec.configSecret",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			provider := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: "tiny"}}
			specOf(t, c.spec).DeepCopyInto(provider.GetSpec())
			got, err := values.Variables(t.Context(), reader, provider)

			if c.refused != "" {
				g.Expect(err).To(And(HaveField("Reason", v1alpha2.SecretNotFoundReason), MatchError(c.refused)))

				return
			}

			g.Expect(got, err).To(Equal(c.want))
			got["A"] = "changed"

			g.Expect(provider.GetSpec().Variables["A"]).NotTo(Equal("changed"), "the spec is not modified")
		})
	}
}

func TestMissing(t *testing.T) {
	g := NewWithT(t)
	required := []string{"A", "B", "C"}
	g.Expect(values.Missing(required, map[string]string{"B": ""})).To(Equal([]string{"A", "C"}), "empty is set")
	g.Expect(required).To(Equal([]string{"A", "B", "C"}), "it is not modified")
}
