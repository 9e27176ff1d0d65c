package clustertemplate_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/clustertemplate"
)

func TestParseInfrastructure(t *testing.T) {
	for s, want := range map[string]clustertemplate.Infrastructure{
		"":            {},
		"aws":         {Name: "aws"},
		"AWS:v2.11.1": {Name: "aws", Version: "v2.11.1"},
		"aws:~2.11":   {Name: "aws", Version: "~2.11"},
	} {
		NewWithT(t).Expect(clustertemplate.ParseInfrastructure(s)).To(Equal(want), s)
	}

	for _, s := range []string{":v1.0.0", "aws:", "aws:v1.0.0:v2.0.0", "a_b", "../aws"} {
		_, err := clustertemplate.ParseInfrastructure(s)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("is not of the form name[:version]")), s)
	}
}

func TestFromFolder(t *testing.T) {
	several := t.TempDir()
	for _, name := range []string{
		"infrastructure-aws/v1.0.0",
		"infrastructure-gcp/v1.0.0",
		"infrastructure-empty",
		"bootstrap-kubeadm/v1.0.0",
	} {
		NewWithT(t).Expect(os.MkdirAll(filepath.Join(several, name), 0o755)).To(Succeed())
	}

	sample, err := filepath.Abs(samples)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	for name, test := range map[string]struct {
		path, infrastructure string
		want, wantErr        string
	}{
		"repository": {
			path:           "testdata",
			infrastructure: "sample:v1.0.0",
			want:           "infrastructure-sample v1.0.0",
		},
		"repository of one":     {path: "testdata/", want: "infrastructure-sample v1.1.0"},
		"repository of several": {path: several, infrastructure: "gcp", want: "infrastructure-gcp v1.0.0"},
		"repository, none chosen": {
			path:    several,
			wantErr: "folder " + several + " holds several infrastructure providers; choose one: aws, empty, gcp",
		},
		"repository without it": {
			path:           several,
			infrastructure: "azure",
			wantErr:        "folder " + several + " holds no infrastructure provider azure; there is aws, empty, gcp",
		},
		"folder without a provider": {
			path:           several + "/bootstrap-kubeadm",
			infrastructure: "aws",
			wantErr:        "folder " + several + "/bootstrap-kubeadm holds no infrastructure provider; ",
		},
		"provider without a version": {
			path:    several + "/infrastructure-empty",
			wantErr: "folder " + several + "/infrastructure-empty holds no version folder such as v1.0.0",
		},
		"provider, newest": {path: samples, want: "infrastructure-sample v1.1.0"},
		"provider, range":  {path: samples, infrastructure: "sample:~1.0", want: "infrastructure-sample v1.0.0"},
		"provider, missing version": {
			path:           samples,
			infrastructure: "sample:v3.0.0",
			wantErr:        "folder " + sample + ": version v3.0.0 is not on offer; there is v1.1.0, v1.0.0",
		},
		"provider, another's name": {
			path:           samples,
			infrastructure: "aws",
			wantErr:        "infrastructure-sample v1.1.0 is not the infrastructure provider aws; ",
		},
		"version": {
			path:           samples + "/v1.0.0",
			infrastructure: "sample",
			want:           "infrastructure-sample v1.0.0",
		},
		"version, another's wanted": {
			path:           samples + "/v1.0.0",
			infrastructure: "sample:v1.1.0",
			wantErr:        "infrastructure-sample: version v1.1.0 is not on offer; there is v1.0.0",
		},
		"version, written without v": {path: samples, infrastructure: "sample:1.0.0", want: "infrastructure-sample v1.0.0"},
		"version that is not on disk": {
			path:    samples + "/v3.0.0",
			wantErr: "folder " + sample + ": version v3.0.0 is not on offer; there is v1.1.0, v1.0.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			want, err := clustertemplate.ParseInfrastructure(test.infrastructure)
			g.Expect(err).NotTo(HaveOccurred())

			set, err := clustertemplate.FromFolder(t.Context(), test.path, want)
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(HavePrefix(test.wantErr)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(set.String()).To(Equal(test.want))
		})
	}
}

func TestFromArchive(t *testing.T) {
	g := NewWithT(t)
	archive := filepath.Join(t.TempDir(), "chart.tgz")
	g.Expect(os.WriteFile(archive, sampleArchive(t), 0o600)).To(Succeed())

	set, err := clustertemplate.FromArchive(archive, clustertemplate.Infrastructure{Name: "sample", Version: "v1.1.0"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(set).To(Equal(sampleSet(t)), "a chart has the same templates as the release")

	_, err = clustertemplate.FromArchive(archive, clustertemplate.Infrastructure{Name: "aws"})
	g.Expect(err).
		To(MatchError(
			HavePrefix("chart " + archive + ": infrastructure-sample v1.1.0 is not the infrastructure provider aws; "),
		))
	_, err = clustertemplate.FromArchive(archive, clustertemplate.Infrastructure{Version: "v1.0.0"})
	g.Expect(err).
		To(MatchError("chart " + archive + ": infrastructure-sample: version v1.0.0 is not on offer; there is v1.1.0"))
	_, err = clustertemplate.FromArchive("source_test.go", clustertemplate.Infrastructure{})
	g.Expect(err).To(MatchError(ContainSubstring("file source_test.go: chart archive: not gzip")))
}

// sampleArchive returns the newest sample as a chart, with further files.
func sampleArchive(t *testing.T) []byte {
	t.Helper()
	g := NewWithT(t)

	files := []chart.File{{Name: "values.yaml"}, {Name: "templates/cluster-template.yaml"}}
	for _, f := range sampleSet(t).Files {
		files = append(files, chart.File{Name: f.Name, Data: f.Data})
	}

	c, err := chart.New(
		chart.Metadata{APIVersion: "v2", Name: "infrastructure-sample", Version: "1.1.0", AppVersion: "v1.1.0"},
		files,
	)
	g.Expect(err).NotTo(HaveOccurred())
	archive, err := c.Archive()
	g.Expect(err).NotTo(HaveOccurred())

	return archive
}
