package access

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestUses(t *testing.T) {
	p := provider("")
	p.GetSpec().ConfigSecret = &v1alpha2.SecretReference{Namespace: "shared", Name: "named"}
	p.GetSpec().FetchConfig = &v1alpha2.FetchConfiguration{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "aws"}},
	}

	for name, c := range map[string]struct {
		kind, namespace, name, label string
		used                         bool
	}{
		"named":                    {"Secret", "shared", "named", "", true},
		"of another kind":          {"ConfigMap", "shared", "named", "", false},
		"of another name":          {"Secret", "shared", "other", "", false},
		"selected":                 {"ConfigMap", "tenant", "any", "aws", true},
		"a Secret that is":         {"Secret", "tenant", "any", "aws", true},
		"with another label":       {"ConfigMap", "tenant", "any", "gcp", false},
		"not in the own namespace": {"ConfigMap", "shared", "any", "aws", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: c.namespace, Name: c.name, Labels: map[string]string{"name": c.label},
			}}
			NewWithT(t).Expect(Uses(p, c.kind, o)).To(Equal(c.used))
		})
	}

	NewWithT(t).Expect(Uses(provider(""), "Secret", secret("tenant"))).To(BeFalse(), "nothing is named or selected")
}
