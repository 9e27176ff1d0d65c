package managers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

func load(t *testing.T, args ...string) (*Settings, error) {
	t.Helper()

	f := &Flags{}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.BindFlags(set)
	NewWithT(t).Expect(set.Parse(args)).To(Succeed())

	return f.Load()
}

// file writes a file and returns its path.
func file(t *testing.T, content string) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "ca.crt")
	NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())

	return path
}

// certificate returns a certificate in PEM format.
func certificate(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())

	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	g.Expect(err).NotTo(HaveOccurred())

	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestLoad(t *testing.T) {
	g := NewWithT(t)

	g.Expect(load(t)).To(BeNil())
	g.Expect(load(t, "--manager-no-proxy=10.0.0.0/8")).To(BeNil(), "without a proxy it has no effect")
	g.Expect(load(t, "--manager-image-pull-secrets=a,b")).To(HaveValue(Equal(
		Settings{ImagePullSecrets: []string{"a", "b"}})))
	g.Expect(load(t, "--manager-high-availability")).To(HaveValue(Equal(Settings{HighAvailability: true})))
	g.Expect(load(t, "--manager-https-proxy=http://proxy:3128")).To(HaveValue(Equal(Settings{Environment: []Variable{
		{"HTTPS_PROXY", "http://proxy:3128"},
		{"NO_PROXY", "$(KUBERNETES_SERVICE_HOST),.svc,.cluster.local,localhost,127.0.0.1"},
	}})))
	g.Expect(load(t, "--manager-http-proxy=http://proxy:3128", "--manager-no-proxy=.example.com,10.0.0.0/8")).To(
		HaveField("Environment", ConsistOf(
			Variable{"HTTP_PROXY", "http://proxy:3128"},
			HaveField("Value", HavePrefix(".example.com,10.0.0.0/8,$(KUBERNETES_SERVICE_HOST),")),
		)))

	ca := certificate(t)
	g.Expect(load(t, "--manager-ca", file(t, "# a comment\n"+ca+ca))).To(HaveField("CA", "# a comment\n"+ca+ca))
}

func TestLoadErrors(t *testing.T) {
	ca := certificate(t)

	for name, c := range map[string]struct{ flag, want string }{
		"a secret": {"--manager-image-pull-secrets=Not_A_Name", `--manager-image-pull-secrets: "Not_A_Name" is not the name`},
		"a proxy": {
			"--manager-https-proxy=user:password@proxy",
			"--manager-https-proxy is not a URL such as http://proxy.example.com:3128",
		},
		"a proxy with a password": {
			"--manager-http-proxy=http://user:password@proxy:3128",
			"--manager-http-proxy holds credentials, which everyone who may read Deployments would see; ",
		},
		"a missing file": {"--manager-ca=" + file(t, "") + "x", "--manager-ca: open "},
		"an empty file":  {"--manager-ca=" + file(t, ""), "contains no certificates in PEM format"},
		"a key": {
			"--manager-ca=" + file(t, ca+"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
			"contains a private key; it may contain only certificates",
		},
		"a broken certificate": {
			"--manager-ca=" + file(t, ca+"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
			"certificate 2: ",
		},
		"too much": {"--manager-ca=" + file(t, strings.Repeat("#", maxCA+1)), "at most 262144 are possible"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.flag)
			NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(c.want), Not(ContainSubstring("password@")))))
		})
	}
}

func TestDigest(t *testing.T) {
	g := NewWithT(t)
	g.Expect((*Settings)(nil).Digest()).To(BeEmpty())
	g.Expect((&Settings{CA: "a"}).Digest()).NotTo(Equal((&Settings{CA: "a", HighAvailability: true}).Digest()))
	g.Expect((&Settings{ImagePullSecrets: []string{"a"}}).Digest()).To(
		Equal("9e90f0c931acfeaf93ec5b5a5da58e508e78854572ed4c959f9b729ad7985f5d"),
		"an operator without the flag changes nothing")
	g.Expect((&Settings{CA: "a"}).Digest()).NotTo(Equal((&Settings{CA: "b"}).Digest()))
	g.Expect((&Settings{CA: "a"}).Digest()).To(Equal((&Settings{CA: "a"}).Digest()))
}

const deployment = `apiVersion: apps/v1
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

// apply returns the pod of the Deployment with the settings, and whether it was changed.
func apply(t *testing.T, s *Settings, text string) (corev1.PodSpec, bool, string) {
	t.Helper()
	g := NewWithT(t)

	object, err := kyaml.Parse(text)
	g.Expect(err).NotTo(HaveOccurred())
	changed, err := s.Apply(object, "infrastructure-aws")
	g.Expect(err).NotTo(HaveOccurred())

	result := object.MustString()

	var parsed struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	g.Expect(yaml.Unmarshal([]byte(result), &parsed)).To(Succeed())

	return parsed.Spec.Template.Spec, changed, result
}

func TestApply(t *testing.T) {
	g := NewWithT(t)
	s := &Settings{
		ImagePullSecrets: []string{"own", "added"},
		Environment:      []Variable{{"HTTPS_PROXY", "http://proxy:1"}, {"NO_PROXY", "x"}},
		CA:               "certificates",
	}

	pod, changed, text := apply(t, s, deployment)
	g.Expect(changed).To(BeTrue())
	g.Expect(pod.ImagePullSecrets).To(Equal([]corev1.LocalObjectReference{{Name: "own"}, {Name: "added"}}))
	g.Expect(pod.Volumes).To(HaveExactElements(HaveField("Name", "data"), And(
		HaveField("Name", "capstan-ca"),
		HaveField("ConfigMap.Name", s.configMapName("infrastructure-aws")),
	)))

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

	_, changed, again := apply(t, s, text)
	g.Expect(changed).To(BeFalse())
	g.Expect(again).To(Equal(text))
}

func TestApplyNothing(t *testing.T) {
	g := NewWithT(t)

	for _, s := range []*Settings{nil, {}} {
		_, changed, _ := apply(t, s, deployment)
		g.Expect(changed).To(BeFalse())
	}

	_, changed, _ := apply(t, &Settings{CA: "a"}, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: broken}\n")
	g.Expect(changed).To(BeFalse())
}

func TestConfigMap(t *testing.T) {
	g := NewWithT(t)
	g.Expect((*Settings)(nil).ConfigMap("ns", "l")).To(BeEmpty())
	g.Expect((&Settings{ImagePullSecrets: []string{"a"}}).ConfigMap("ns", "l")).To(BeEmpty())

	text, err := (&Settings{CA: "one"}).ConfigMap("capa-system", "infrastructure-aws")
	g.Expect(err).NotTo(HaveOccurred())

	configMap := &corev1.ConfigMap{}
	g.Expect(yaml.UnmarshalStrict([]byte(text), configMap)).To(Succeed())
	g.Expect(configMap.Namespace).To(Equal("capa-system"))
	g.Expect(configMap.Name).To(MatchRegexp("^infrastructure-aws-ca-[0-9a-f]{10}$"))
	g.Expect(configMap.Name).NotTo(Equal((&Settings{CA: "two"}).configMapName("infrastructure-aws")))
	g.Expect(configMap.Data).To(Equal(map[string]string{"ca.crt": "one"}))
	g.Expect(configMap.Labels).To(HaveKeyWithValue("cluster.x-k8s.io/provider", "infrastructure-aws"))
}
