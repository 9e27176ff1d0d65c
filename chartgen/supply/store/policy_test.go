package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/charts"
)

const operatorUser = "system:serviceaccount:capstan-system:capstan"

func TestAdmissionPolicy(t *testing.T) {
	g := NewWithT(t)
	root := clusterClient(t, "root")
	configMaps := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}
	admin := restrictedClient(t, root, "other-user", configMaps)
	operator := restrictedClient(t, root, operatorUser, configMaps)

	applyPolicy(t, root)

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
		Should(MatchError(And(ContainSubstring("only the operator may write"), ContainSubstring("other-user"))))

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

// restrictedClient returns a client of a user who has the permissions in rules only.
func restrictedClient(t *testing.T, root client.Client, user string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	g := NewWithT(t)

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "restricted-"}, Rules: rules}
	g.Expect(root.Create(t.Context(), role)).To(Succeed())
	g.Expect(root.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	})).To(Succeed())

	config := controlPlane.Get(t).Config()
	config.Impersonate.UserName = user
	c, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	return c
}

// applyPolicy applies the policies of the operator's chart, until the test ends.
func applyPolicy(t *testing.T, c client.Client) {
	t.Helper()
	g := NewWithT(t)
	capstan, err := charts.Load("../../../charts/capstan")
	g.Expect(err).NotTo(HaveOccurred())
	data, err := charts.Render(capstan, nil, func(template string) bool { return template == "admission.yaml" })
	g.Expect(err).NotTo(HaveOccurred())

	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)

	for {
		object := &unstructured.Unstructured{}

		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return
		}

		g.Expect(err).NotTo(HaveOccurred())

		if len(object.Object) == 0 { // the comment at the beginning
			continue
		}

		g.Expect(c.Create(t.Context(), object)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), object) })
	}
}
