package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/bed"
)

const registryPassword = "pass-word"

func TestChartsGoThroughARegistry(t *testing.T) {
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
	access := []string{"--ca-file", ca, "--registry-config", config}
	run := func(args ...string) (string, error) {
		out, _, err := chartCLI(t, append(args, access...)...)
		return out, err
	}

	out, err := run("push", "../../test/data/providers/infrastructure-aws", "oci://"+r.Address+"/capi")
	g.Expect(err).NotTo(HaveOccurred())

	lines := strings.Split(out, "\n")
	g.Expect(lines[0]).To(HavePrefix("oci://" + r.Address + "/capi/infrastructure-aws:1.0.0@sha256:"))
	again, err := run("push", "../../test/data/providers/infrastructure-aws", "oci://"+r.Address+"/capi")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(out))

	out, err = run("pull", "oci://"+r.Address+"/capi/infrastructure-aws:1.0.0", "--output", dir)
	g.Expect(err).NotTo(HaveOccurred())

	file := filepath.Join(dir, "infrastructure-aws-1.0.0.tgz")
	g.Expect(out).To(Equal(file + "\n" + lines[1] + "\n"))

	remote, err := run("show", lines[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote).
		To(And(ContainSubstring("Contract "), ContainSubstring("Required variables"), ContainSubstring(lines[1]), ContainSubstring(lines[0])))

	local, err := run("show", file, "-o", "yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(local).
		To(And(ContainSubstring("digest: "+lines[1]), ContainSubstring("providerName: aws"), Not(ContainSubstring("reference:"))))

	for name, test := range map[string]struct {
		args    []string
		message string
	}{
		"no version":            {[]string{"pull", "oci://" + r.Address + "/capi/infrastructure-aws"}, "names no version"},
		"one that is not there": {[]string{"pull", "oci://" + r.Address + "/capi/infrastructure-aws:9.9.9"}, "not found"},
		"a tag to push to":      {[]string{"push", file, "oci://" + r.Address + "/capi:v1"}, "give the repository alone"},
		"a user alone":          {[]string{"pull", "oci://" + r.Address + "/capi/infrastructure-aws:1.0.0", "-u", "me"}, "belong together"},
		"an unknown output":     {[]string{"show", file, "-o", "xml"}, "text, json or yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(test.args...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.message)))
		})
	}

	t.Run("a password from standard input", func(t *testing.T) {
		g := NewWithT(t)
		cmd := chartCommand()
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetIn(strings.NewReader(registryPassword + "\n"))
		cmd.SetOut(&strings.Builder{})
		g.Expect(os.WriteFile(config, []byte("{}"), 0o600)).To(Succeed())
		cmd.SetArgs(
			[]string{
				"pull",
				"oci://" + r.Address + "/capi/infrastructure-aws:1.0.0",
				"-o",
				dir,
				"--ca-file",
				ca,
				"--registry-config",
				config,
				"-u",
				"me",
				"--password-stdin",
			},
		)
		g.Expect(cmd.ExecuteContext(t.Context())).To(Succeed())
	})
}
