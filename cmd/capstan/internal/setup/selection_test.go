package setup

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

// TestWanted: as with clusterctl, the first installation includes core and the kubeadm providers unless others are
// named.
func TestWanted(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		later bool // the cluster has a core provider
		want  []string
		err   string
	}{
		"nothing": {want: []string{"cluster-api ", "bootstrap-kubeadm ", "control-plane-kubeadm "}},
		"an infrastructure": {
			args: []string{"-i", "aws:v2.11.1"},
			want: []string{"cluster-api ", "bootstrap-kubeadm ", "control-plane-kubeadm ", "infrastructure-aws v2.11.1"},
		},
		"a further one, later": {
			args: []string{"--infrastructure", "docker"}, later: true, want: []string{"infrastructure-docker "},
		},
		"others than the defaults": {
			args: []string{"-b", "k0smotron", "-c", "-", "--core", "cluster-api:~1.13"},
			want: []string{"cluster-api ~1.13", "bootstrap-k0smotron "},
		},
		"all types": {
			args: []string{
				"--runtime-extension", "nutanix", "--ipam", "in-cluster", "--addon", "helm", "--infrastructure", "docker,aws",
			},
			later: true,
			want: []string{
				"infrastructure-docker ", "infrastructure-aws ", "ipam-in-cluster ", "runtime-extension-nutanix ", "addon-helm ",
			},
		},
		"nothing, later":   {later: true},
		"a provider twice": {args: []string{"-i", "aws", "-i", "aws:v1.0.0"}, err: "--infrastructure: aws is named twice"},
		"no version":       {args: []string{"-i", "aws:"}, err: "--infrastructure=aws:: expected name[:version], such as"},
		"no name":          {args: []string{"--core", ":v1.0.0"}, err: "expected name[:version], such as cluster-api:v1."},
		"a wrong version":  {args: []string{"-i", "aws:latest"}, err: "--infrastructure=aws:latest: "},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := selection{}
			flags := pflag.NewFlagSet("init", pflag.ContinueOnError)

			s.addFlags(flags)
			g.Expect(flags.Parse(c.args)).To(Succeed())

			all, err := s.wanted(!c.later)
			if c.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.err)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())

			var got []string
			for _, w := range all {
				got = append(got, w.label()+" "+w.version)
			}

			g.Expect(got).To(Equal(c.want))
		})
	}
}
