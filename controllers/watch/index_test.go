package watch

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// A resource that an event concerns, and that the index does not have under one of the event's
// keys, would never be woken.
func TestKeysFindTheResourcesOfAnEvent(t *testing.T) {
	const name = "infrastructure-aws"

	additional := func(namespace string) v1alpha2.ProviderSpec {
		return v1alpha2.ProviderSpec{AdditionalManifests: &v1alpha2.ConfigMapReference{Namespace: namespace, Name: name}}
	}
	fetched := func(config v1alpha2.FetchConfiguration) v1alpha2.ProviderSpec {
		return v1alpha2.ProviderSpec{FetchConfig: &config}
	}

	for what, c := range map[string]struct {
		spec v1alpha2.ProviderSpec
		key  string
	}{
		"source":                      {fetched(v1alpha2.FetchConfiguration{Selector: selecting(name)}), "selector/capa/"},
		"additional manifests":        {additional(""), "ConfigMap/capa/" + name},
		"additional manifests of all": {additional("shared"), "ConfigMap/shared/" + name},
		"variables":                   {v1alpha2.ProviderSpec{SecretName: name}, "Secret/capa/" + name},
		"variables elsewhere": {
			v1alpha2.ProviderSpec{ConfigSecret: &v1alpha2.SecretReference{Namespace: "x", Name: name}}, "Secret/x/" + name,
		},
		"credentials": {
			fetched(v1alpha2.FetchConfiguration{SecretRef: &v1alpha2.LocalSecretReference{Name: name}}), "Secret/capa/" + name,
		},
		"kubeconfig": {
			v1alpha2.ProviderSpec{KubeConfig: &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
				LocalSecretReference: v1alpha2.LocalSecretReference{Name: name},
			}}},
			"Secret/capa/" + name,
		},
		"the Secret of a Certificate": {v1alpha2.ProviderSpec{}, certificateKey(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "capa", Name: "cert", Annotations: map[string]string{v1alpha2.CertificateNameAnnotation: name},
		}})[0]},
		"a record of Helm's": {v1alpha2.ProviderSpec{}, "release/capa/" + name},
	} {
		t.Run(what, func(t *testing.T) {
			p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capa", Name: "aws"}}
			*p.GetSpec() = c.spec
			p.GetStatus().Objects = []string{"capa_" + name + "_cert-manager.io_Certificate_v1"}
			NewWithT(t).Expect(keysOf(p)).To(ContainElement(c.key))
		})
	}
}

// selecting returns a selector of objects with a label.
func selecting(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
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
