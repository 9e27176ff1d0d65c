package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const operatorUser = "system:serviceaccount:capstan-system:capstan"

func TestAdmissionPolicy(t *testing.T) {
	g := NewWithT(t)
	admin := clusterClient(t, "other-user")
	operator := clusterClient(t, operatorUser)
	applyPolicy(t, admin)

	cm := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: "chart-",
				Namespace:    "default",
				Labels:       map[string]string{labelComponent: componentChart},
			},
		}
	}

	g.Eventually(func() error { return admin.Create(t.Context(), cm()) }).
		WithTimeout(30 * time.Second).
		WithPolling(100 * time.Millisecond).
		Should(MatchError(And(ContainSubstring("only "+operatorUser+" may write"), ContainSubstring("other-user"))))

	key := Key{Namespace: "default", Provider: "infrastructure-policy", Version: "v1.0.0", ContentID: "2-abc"}
	stored, err := (&Cluster{Client: operator}).Put(t.Context(), key, testChart(t, key))
	g.Expect(err).NotTo(HaveOccurred())

	written := &corev1.ConfigMap{}
	name := client.ObjectKey{Namespace: "default", Name: stored.Reference[strings.LastIndex(stored.Reference, "/")+1:]}
	g.Expect(admin.Get(t.Context(), name, written)).To(Succeed())
	delete(written.Labels, labelComponent)
	g.Expect(admin.Update(t.Context(), written)).
		To(MatchError(ContainSubstring("may write ConfigMaps that store charts")), "nor may the label be removed")

	plain := cm()
	plain.Labels = nil
	g.Expect(admin.Create(t.Context(), plain)).To(Succeed(), "other ConfigMaps are not restricted")
	plain.Labels = map[string]string{labelComponent: componentChart}
	g.Expect(admin.Update(t.Context(), plain)).To(MatchError(ContainSubstring("may write ConfigMaps that store charts")))
	g.Expect(admin.Delete(t.Context(), written)).To(Succeed())

	// Any user can create a ConfigMap without the label under the name of a future chart. It is not
	// read as a chart, and Put replaces it.
	planted := written.DeepCopy()
	planted.UID, planted.ResourceVersion = "", ""
	g.Expect(admin.Create(t.Context(), planted)).To(Succeed())

	cluster := &Cluster{Client: operator}
	_, err = cluster.Get(t.Context(), key)
	g.Expect(err).To(MatchError(ErrNotFound))
	_, err = cluster.Put(t.Context(), key, testChart(t, key))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.Get(t.Context(), key)).To(HaveField("Digest", stored.Digest))
}

// applyPolicy applies the policy that is installed with the operator, until the test ends.
func applyPolicy(t *testing.T, c client.Client) {
	t.Helper()
	g := NewWithT(t)
	data, err := os.ReadFile("../../../config/policy/stored-charts.yaml")
	g.Expect(err).NotTo(HaveOccurred())

	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)

	for {
		object := &unstructured.Unstructured{}

		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return
		}

		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Create(t.Context(), object)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), object) })
	}
}
