package watch

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// A resource that an event concerns, and that the index does not have under one of the event's
// keys, would never be woken.
func TestKeysFindTheResourcesOfAnEvent(t *testing.T) {
	const name = "infrastructure-aws"

	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"name": name}}
	}
	configMap := func(namespace string) client.Object { return &corev1.ConfigMap{ObjectMeta: meta(namespace, name)} }
	secret := func(namespace string) client.Object { return &corev1.Secret{ObjectMeta: meta(namespace, name)} }
	selector := &v1alpha2.FetchConfiguration{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}}
	additional := func(namespace string) v1alpha2.ProviderSpec {
		return v1alpha2.ProviderSpec{AdditionalManifests: &v1alpha2.ConfigMapReference{Namespace: namespace, Name: name}}
	}

	for what, c := range map[string]struct {
		spec    v1alpha2.ProviderSpec
		changed client.Object
		keys    func(client.Object) []string
		want    func(v1alpha2.Provider, client.Object) bool
	}{
		"ConfigMap as source": {
			v1alpha2.ProviderSpec{FetchConfig: selector},
			configMap("capa"), inputKeys("ConfigMap"), isSource,
		},
		"Secret as source": {
			v1alpha2.ProviderSpec{FetchConfig: selector},
			secret("capa"), inputKeys("Secret"), isSource,
		},
		"additional manifests":        {additional(""), configMap("capa"), inputKeys("ConfigMap"), isAdditional},
		"additional manifests of all": {additional("shared"), configMap("shared"), inputKeys("ConfigMap"), isAdditional},
		"variables": {
			v1alpha2.ProviderSpec{SecretName: name},
			secret("capa"), inputKeys("Secret"), hasVariables,
		},
		"variables elsewhere": {
			v1alpha2.ProviderSpec{ConfigSecret: &v1alpha2.SecretReference{Namespace: "x", Name: name}},
			secret("x"), inputKeys("Secret"), hasVariables,
		},
		"credentials": {
			v1alpha2.ProviderSpec{FetchConfig: &v1alpha2.FetchConfiguration{
				SecretRef: &v1alpha2.LocalSecretReference{Name: name},
			}},
			secret("capa"), inputKeys("Secret"), hasCredentials,
		},
		"kubeconfig": {
			v1alpha2.ProviderSpec{KubeConfig: &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
				LocalSecretReference: v1alpha2.LocalSecretReference{Name: name},
			}}},
			secret("capa"), inputKeys("Secret"), hasKubeConfig,
		},
		"a record of Helm's": {v1alpha2.ProviderSpec{}, secret("capa"), releaseKey, isRelease},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capa", Name: "aws"}}
			*p.GetSpec() = c.spec
			g.Expect(c.want(p, c.changed)).To(BeTrue(), "it concerns the resource")
			g.Expect(slices.ContainsFunc(keysOf(p), func(key string) bool { return slices.Contains(c.keys(c.changed), key) })).
				To(BeTrue(), "and is found")
		})
	}
}

func TestKeysOfWaitingAndRemoteResources(t *testing.T) {
	g := NewWithT(t)
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capa", Name: "aws"}}
	g.Expect(keysOf(p)).To(ContainElement(waitingKey))
	g.Expect(keysOf(p)).NotTo(ContainElement(remoteKey))
	conditions.MarkTrue(p, v1alpha2.ReadyCondition, v1alpha2.HealthyReason, "it runs")
	p.Spec.KubeConfig = &v1alpha2.KubeConfig{}
	g.Expect(keysOf(p)).NotTo(ContainElement(waitingKey))
	g.Expect(keysOf(p)).To(ContainElement(remoteKey))
	p.Generation++
	g.Expect(keysOf(p)).To(ContainElement(waitingKey), "it may wait for anything")
}
