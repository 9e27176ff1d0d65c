package cli

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: one
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: one, context: {cluster: c, user: u, namespace: first}}
- {name: two, context: {cluster: c, user: u}}
`

func clusterFlags(t *testing.T, args ...string) *ClusterFlags {
	t.Helper()

	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f := AddClusterFlags(flags)
	NewWithT(t).Expect(flags.Parse(args)).To(Succeed())

	return f
}

func TestConnect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	NewWithT(t).Expect(os.WriteFile(file, []byte(kubeconfig), 0o600)).To(Succeed())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	words, types := filepath.Join(t.TempDir(), "words"), filepath.Join(t.TempDir(), "types")
	NewWithT(t).Expect(os.WriteFile(words, []byte("some words"), 0o600)).To(Succeed())
	NewWithT(t).Expect(os.WriteFile(types, []byte("apiVersion: v1\nkind: Config\nclusters: 3\n"), 0o600)).To(Succeed())

	for name, c := range map[string]struct {
		args []string
		err  string
	}{
		"no kubeconfig": {
			nil,
			"find the management cluster: no kubeconfig was found: " + os.Getenv("KUBECONFIG") + "; select one with " +
				"--kubeconfig or --context",
		},
		"a kubeconfig": {[]string{"--kubeconfig", file}, ""},
		"a context":    {[]string{"--kubeconfig", file, "--context", "two"}, ""},
		"an unknown context": {
			[]string{"--kubeconfig", file, "--context", "three"},
			`find the management cluster: context "three" does not exist`,
		},
		"a missing file": {[]string{"--kubeconfig", file + "x"}, "find the management cluster: stat "},
		"another file": {
			[]string{"--kubeconfig", words},
			"find the management cluster: error loading config file \"" + words + "\": it is not a kubeconfig; select",
		},
		"other types": {
			[]string{"--kubeconfig", types},
			"find the management cluster: error loading config file \"" + types + "\": it is not a kubeconfig; select",
		},
		"a server": {[]string{"--server", "https://127.0.0.1:1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cluster, err := clusterFlags(t, append(c.args, "-n", "ns")...).Connect()

			if c.err != "" {
				g.Expect(err).To(MatchError(HavePrefix(c.err)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cluster.Namespace).To(Equal("ns"))
			g.Expect(cluster.Config.Timeout).To(Equal(requestTimeout))
		})
	}
}
