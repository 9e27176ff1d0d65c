package cli

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReadEnvironment(t *testing.T) {
	g := NewWithT(t)
	in := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	data := map[string]string{"key": "from a ConfigMap", "ALL": "from all of it"}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "capstan-system", Name: "c"}, Data: data}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capstan-system", Name: "s"},
		Data:       map[string][]byte{"key": []byte("from a Secret")},
	}
	d := operator("capstan-system")
	flags := published(t, "capstan-system", "--variables-from-environment=PLAIN,SECRET,CONFIGMAP,P_ALL,FIELD,MISSING")
	container := &d.Spec.Template.Spec.Containers[1]
	container.Env = []corev1.EnvVar{
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
	container.EnvFrom = []corev1.EnvFromSource{
		{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: in("c")}},
	}

	config, _, err := readOperator(t, "", d, flags, configMap, secret)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Options.Environment).To(BeEquivalentTo(map[string]string{
		"PLAIN": "plain", "SECRET": "from a Secret", "CONFIGMAP": "from a ConfigMap", "P_ALL": "from all of it",
	}))
	g.Expect(config.Warnings).To(ConsistOf(
		And(ContainSubstring("the variable FIELD"), ContainSubstring("neither a value nor")),
		And(ContainSubstring("the variable MISSING"), ContainSubstring("does not set it"))))
}
