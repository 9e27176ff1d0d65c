package manifest_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/managers"
	"github.com/capstan-project/capstan/controllers/manifest"
)

const tinyDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: manager}
spec:
  template:
    spec:
      imagePullSecrets: [{name: own}]
      initContainers:
      - name: init
      containers:
      - name: manager
        env:
        - {name: HTTPS_PROXY, value: "http://own:1"}
      - name: other
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, emptyDir: {}}]
`

var forManagers = &managers.Settings{
	ImagePullSecrets: []string{"own", "added"},
	Environment:      []managers.Variable{{Name: "HTTPS_PROXY", Value: "http://proxy:1"}, {Name: "NO_PROXY", Value: "x"}},
	CA:               "certificates",
}

func TestSettingsForManagers(t *testing.T) {
	g := NewWithT(t)

	in := manifest.Input{Namespace: "capa-system", Label: "infrastructure-aws", Managers: forManagers}
	got, err := renderOf(t, in, tinyDeployment)
	g.Expect(err).NotTo(HaveOccurred())

	deployment := &appsv1.Deployment{}
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(got["Deployment manager"], deployment)).To(Succeed())

	pod := deployment.Spec.Template.Spec
	g.Expect(pod.ImagePullSecrets).To(Equal([]corev1.LocalObjectReference{{Name: "own"}, {Name: "added"}}))
	g.Expect(pod.Volumes).To(HaveExactElements(HaveField("Name", "data"), HaveField("Name", "capstan-ca")))

	all := []corev1.EnvVar{
		{Name: "SSL_CERT_DIR", Value: "/etc/ssl/certs:/etc/pki/tls/certs:/etc/capstan/ca"},
		{Name: "HTTPS_PROXY", Value: "http://proxy:1"},
		{Name: "NO_PROXY", Value: "x"},
	}
	mount := corev1.VolumeMount{Name: "capstan-ca", MountPath: "/etc/capstan/ca", ReadOnly: true}

	g.Expect(pod.InitContainers[0].Env).To(Equal(all))
	g.Expect(pod.InitContainers[0].VolumeMounts).To(Equal([]corev1.VolumeMount{mount}))
	g.Expect(pod.Containers[0].Env).To(Equal([]corev1.EnvVar{
		{Name: "HTTPS_PROXY", Value: "http://own:1"}, all[0], all[2],
	}), "what the Deployment sets takes precedence")
	g.Expect(pod.Containers[1].Env).To(Equal(all))
	g.Expect(pod.Containers[1].VolumeMounts).To(HaveExactElements(HaveField("Name", "data"), mount))

	name := pod.Volumes[1].ConfigMap.Name
	g.Expect(name).To(MatchRegexp("^infrastructure-aws-ca-[0-9a-f]{10}$"))
	g.Expect(got).To(HaveKey("ConfigMap " + name))

	configMap := &corev1.ConfigMap{}
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(got["ConfigMap "+name], configMap)).To(Succeed())
	g.Expect(configMap.Namespace).To(Equal("capa-system"))
	g.Expect(configMap.Immutable).To(HaveValue(BeTrue()))
	g.Expect(configMap.Data).To(Equal(map[string]string{"ca.crt": "certificates"}))
	g.Expect(configMap.Labels).To(HaveKeyWithValue("cluster.x-k8s.io/provider", "infrastructure-aws"))

	in.Managers = &managers.Settings{CA: "others"}
	got, err = renderOf(t, in, tinyDeployment)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).NotTo(HaveKey("ConfigMap "+name), "so that pods are replaced with the certificates")
}

func TestPatchesOverrideSettings(t *testing.T) {
	g := NewWithT(t)

	got, err := render(t, manifest.Input{Managers: forManagers, Patches: []v1alpha2.Patch{
		{Patch: "{kind: ConfigMap, metadata: {annotations: {patched: too}}}"},
		{Patch: "[{op: remove, path: /spec/template/spec/volumes}]", Target: &v1alpha2.PatchTarget{Kind: "Deployment"}},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got["Deployment manager"]["spec"]).To(HaveKeyWithValue("template", HaveKeyWithValue("spec",
		Not(HaveKey("volumes")))))
	g.Expect(hit(got)).To(ConsistOf(HavePrefix("ConfigMap infrastructure-tiny-ca-")))
}

func TestSettingsChangeOnlyPods(t *testing.T) {
	g := NewWithT(t)

	for _, s := range []*managers.Settings{nil, {}, {CA: "a"}} {
		const broken = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: broken}\n"

		got, err := renderOf(t, manifest.Input{Managers: s}, broken)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(HaveKeyWithValue("Deployment broken", objects(t, broken)["Deployment broken"]))
	}
}
