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
)

func load(t *testing.T, args ...string) (*Settings, error) {
	t.Helper()

	f := &Flags{}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.BindFlags(set)
	NewWithT(t).Expect(set.Parse(args)).To(Succeed())

	return f.Load(os.ReadFile)
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
