package operatorconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReadSettingsOfReconciles(t *testing.T) {
	g := NewWithT(t)
	d := deployment("capstan-system", "--suspend", "--watch-namespaces=a,b", "--watch-label-selector=team=x",
		"--insecure-kubeconfig-tls", "--insecure-kubeconfig-exec")

	config, _, err := read(t, "", d)
	g.Expect(err).NotTo(HaveOccurred())

	o := config.Controllers
	g.Expect(o.Suspended).To(BeTrue())
	g.Expect(o.KubeConfig.InsecureTLS).To(BeTrue())
	g.Expect(o.KubeConfig.InsecureExecProvider).To(BeTrue())

	for _, c := range []struct {
		namespace, team string
		want            bool
	}{{"a", "x", true}, {"c", "x", false}, {"b", "y", false}} {
		resource := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace, Labels: map[string]string{"team": c.team},
		}}
		g.Expect(o.Scope.Includes(resource)).To(Equal(c.want), c.namespace+c.team)
	}

	_, _, err = read(t, "", deployment("capstan-system", "--watch-label-selector=="))
	g.Expect(err).To(MatchError(ContainSubstring("invalid label selector")))
}

func TestReadEnvironment(t *testing.T) {
	g := NewWithT(t)
	in := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	data := map[string]string{"key": "from a ConfigMap", "ALL": "from all of it"}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "capstan-system", Name: "c"}, Data: data}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capstan-system", Name: "s"},
		Data:       map[string][]byte{"key": []byte("from a Secret")},
	}
	d := deployment("capstan-system", "--variables-from-environment=PLAIN,SECRET,CONFIGMAP,P_ALL,FIELD,MISSING")
	operator := &d.Spec.Template.Spec.Containers[1]
	operator.Env = []corev1.EnvVar{
		{Name: "PLAIN", Value: "before"},
		{Name: "PLAIN", Value: "plain"},
		{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: in("s"), Key: "key"},
		}},
		{Name: "CONFIGMAP", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: in("c"), Key: "key"},
		}},
		{Name: "FIELD", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
		}},
		{Name: "NOT_ASKED_FOR", Value: "x"},
	}
	operator.EnvFrom = []corev1.EnvFromSource{
		{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: in("c")}},
	}

	config, _, err := read(t, "", d, configMap, secret)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Controllers.Environment).To(BeEquivalentTo(map[string]string{
		"PLAIN": "plain", "SECRET": "from a Secret", "CONFIGMAP": "from a ConfigMap", "P_ALL": "from all of it",
	}))
	g.Expect(config.Warnings).To(ConsistOf(
		And(ContainSubstring("the variable FIELD"), ContainSubstring("neither a value nor")),
		And(ContainSubstring("the variable MISSING"), ContainSubstring("does not set it"))))
}
