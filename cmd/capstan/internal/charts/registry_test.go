package charts

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/test/bed"
)

const registryPassword = "pass-word"

// TestRegistry: a password from standard input and one from docker's configuration give access to the same charts.
func TestRegistry(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	r, err := bed.RunRegistry(
		t.Context(),
		bed.RegistryOptions{Dir: t.TempDir(), TLS: true, User: "me", Password: registryPassword},
	)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(r.Stop)

	ca, config := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "config.json")
	g.Expect(os.WriteFile(ca, r.CA, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(config, []byte("{}"), 0o600)).To(Succeed())

	access := []string{"--registry-ca", ca, "--registry-config", config}
	mirror := func(input string, args ...string) (string, error) {
		all := slices.Concat(access, []string{
			"infrastructure-aws", "--source", sampleProviders, "--charts-only", "--to", "oci://" + r.Address + "/capi",
		}, args)
		_, log, err := clitest.RunWithInput(t.Context(), NewMirrorCommand, input, all...)

		return log, err
	}

	_, err = mirror("")
	g.Expect(err).To(MatchError(ContainSubstring("give a username and a password, or a docker configuration")))

	_, err = mirror("", "-u", "me")
	g.Expect(err).To(MatchError(ContainSubstring("must be used together")))

	log, err := mirror(registryPassword+"\n", "-u", "me", "--password-stdin")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(log).To(ContainSubstring("copied"))

	login := base64.StdEncoding.EncodeToString([]byte("me:" + registryPassword))
	g.Expect(os.WriteFile(config, fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, r.Address, login), 0o600)).To(Succeed())

	log, err = mirror("")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(log).To(ContainSubstring("present"))

	reference := "oci://" + r.Address + "/capi/charts/infrastructure-aws:1.0.0"
	linted, _, err := run(t, slices.Concat([]string{"lint", reference}, access)...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(linted).To(And(ContainSubstring("warning infra-cluster/template: "), ContainSubstring("\n  "+reference+"  ")))
}
