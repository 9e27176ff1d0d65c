package charts

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/test/bed"
)

const registryPassword = "pass-word"

func TestPushAndPull(t *testing.T) {
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

	login := base64.StdEncoding.EncodeToString([]byte("me:" + registryPassword))
	g.Expect(os.WriteFile(config, fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, r.Address, login), 0o600)).To(Succeed())
	access := []string{"--registry-ca", ca, "--registry-config", config}
	runWithAccess := func(args ...string) (string, error) {
		out, _, err := run(t, append(args, access...)...)
		return out, err
	}

	out, err := runWithAccess("push", sampleProviders+"/infrastructure-aws", "oci://"+r.Address+"/capi")
	g.Expect(err).NotTo(HaveOccurred())

	lines := strings.Split(out, "\n")
	g.Expect(lines[0]).To(HavePrefix("oci://" + r.Address + "/capi/infrastructure-aws:1.0.0@sha256:"))
	again, err := runWithAccess("push", sampleProviders+"/infrastructure-aws", "oci://"+r.Address+"/capi")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(out))

	out, err = runWithAccess("pull", "oci://"+r.Address+"/capi/infrastructure-aws:1.0.0", "--destination", dir)
	g.Expect(err).NotTo(HaveOccurred())

	file := filepath.Join(dir, "infrastructure-aws-1.0.0.tgz")
	g.Expect(out).To(Equal(file + "\n" + lines[1] + "\n"))

	linted, err := runWithAccess("lint", lines[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(linted).To(And(ContainSubstring("warning infra-cluster/template: "), ContainSubstring("\n  "+lines[0]+"  ")))

	remote, err := runWithAccess("show", lines[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote).
		To(And(
			ContainSubstring("Contract "),
			ContainSubstring("Required variables"),
			ContainSubstring(lines[1]),
			ContainSubstring(lines[0]),
		))

	local, err := runWithAccess("show", file, "-o", "yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(local).
		To(And(
			ContainSubstring("digest: "+lines[1]),
			ContainSubstring("providerName: aws"),
			Not(ContainSubstring("reference:")),
		))

	for name, test := range map[string]struct {
		args    []string
		message string
	}{
		"no version":        {[]string{"pull", "oci://" + r.Address + "/capi/infrastructure-aws"}, "has no version"},
		"a missing version": {[]string{"pull", "oci://" + r.Address + "/capi/infrastructure-aws:9.9.9"}, "not found"},
		"a tag to push to":  {[]string{"push", file, "oci://" + r.Address + "/capi:v1"}, "give the repository alone"},
		"a user alone": {
			[]string{"pull", "oci://" + r.Address + "/capi/infrastructure-aws:1.0.0", "-u", "me"},
			"must be used together",
		},
		"an unknown output": {[]string{"show", file, "-o", "xml"}, "use one of table, json, yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runWithAccess(test.args...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.message)))
		})
	}

	t.Run("a password from standard input", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(os.WriteFile(config, []byte("{}"), 0o600)).To(Succeed())
		_, _, err := clitest.RunWithInput(
			t.Context(),
			NewCommand,
			registryPassword+"\n",
			"pull",
			"oci://"+r.Address+"/capi/infrastructure-aws:1.0.0",
			"--destination",
			dir,
			"--registry-ca",
			ca,
			"--registry-config",
			config,
			"-u",
			"me",
			"--password-stdin",
		)
		g.Expect(err).NotTo(HaveOccurred())
	})
}
