package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/lint"
	"github.com/capstan-project/capstan/test/conformance"
)

const (
	sample             = "testdata/infrastructure-example"
	controlPlaneSample = "testdata/control-plane-example"

	infrastructureSample = "../data/providers/infrastructure-docker/v1.0.0"
)

func TestMain(m *testing.M) {
	if resource := os.Getenv(exampleResource); resource != "" {
		runManager(resource, os.Getenv(exampleFault))
	}

	os.Exit(m.Run())
}

func TestConformance(t *testing.T) {
	g := NewWithT(t)

	e, err := conformance.Start(t.Context(), infrastructureSample)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(e.Stop()).To(Succeed()) })

	t.Run("a release that conforms", func(t *testing.T) {
		t.Parallel() // the operator migrates objects only after a minute

		g := NewWithT(t)
		g.Expect(rules(t, e, conformance.Options{
			Release: filepath.Join(sample, "v1.1.0"), Previous: filepath.Join(sample, "v1.0.0"),
		})).To(BeEmpty())

		out := filepath.Join(t.TempDir(), "out")
		g.Expect(os.CopyFS(out, os.DirFS(filepath.Join(sample, "v1.0.0")))).To(Succeed())
		g.Expect(rules(t, e, conformance.Options{
			Release: out, Identity: conformance.Identity{Name: "example", Version: "v1.0.0"},
		})).To(BeEmpty(), "nothing of v1.1.0 remains")
	})

	checkManagers(t, e)

	for name, c := range map[string]struct {
		// oldnew are replacements in a file of v1.1.0.
		file   string
		oldnew []string
		// extra is the name of another file.
		extra string
		// upgrade means that v1.0.0, which conforms, is upgraded.
		upgrade bool
		timeout time.Duration
		want    []string
	}{
		"nolabel": {
			file:   "infrastructure-components.yaml",
			oldnew: []string{"    cluster.x-k8s.io/v1beta2: v1beta1_v1beta2\n", ""},
			want:   []string{"crd/contract-label"},
		},
		"nowatch": {
			file:   "infrastructure-components.yaml",
			oldnew: []string{"verbs: [get, list, watch, patch]", "verbs: [get, list, patch]"},
			want:   []string{"conformance/permissions"},
		},
		"invalid": {
			file:   "infrastructure-components.yaml",
			oldnew: []string{"replicas: 1", "replicas: -1"},
			want:   []string{"conformance/install"},
		},
		"misnamed": {
			file:  "metadata.yaml",
			extra: "cluster-class.yaml",
			want:  []string{"files/names"},
		},
		"accepted": {
			file: "metadata.yaml",
			oldnew: []string{"kind: Metadata\n", "kind: Metadata\nmetadata:\n  annotations:\n" +
				"    capstan.dev/accepted-findings: '[{rule: files/names, reason: It is for tests.}]'\n"},
			extra: "cluster-class.yaml",
		},
		"noseries": {
			file:   "metadata.yaml",
			oldnew: []string{"- {major: 1, minor: 1, contract: v1beta2}\n", ""},
			want:   []string{"metadata/series", "conformance/chart"},
		},
		"noupgrade": {
			file:    "infrastructure-components.yaml",
			oldnew:  []string{"replicas: 1", "replicas: -1"},
			upgrade: true,
			want:    []string{"conformance/upgrade"},
		},
		"finalizer": {
			file: "infrastructure-components.yaml",
			oldnew: []string{
				"  name: example-manager\n  namespace: example-system\n",
				"  name: example-manager\n  namespace: example-system\n  finalizers: [example.com/kept]\n",
			},
			timeout: 45 * time.Second,
			want:    []string{"conformance/removal"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := conformance.Options{Release: broken(t, sample, name, "v1.1.0", c.file, c.oldnew...), Timeout: c.timeout}
			if c.upgrade {
				o.Previous = broken(t, sample, name, "v1.0.0", c.file)
			}

			if c.extra != "" {
				NewWithT(t).Expect(os.WriteFile(filepath.Join(o.Release, c.extra), nil, 0o600)).To(Succeed())
			}

			NewWithT(t).Expect(rules(t, e, o)).To(ConsistOf(c.want))
		})
	}
}

func TestMissingRelease(t *testing.T) {
	for _, folder := range []string{filepath.Join(sample, "v9.9.9"), "testdata/infrastructure-missing/v1.0.0"} {
		_, err := (&conformance.Environment{}).Check(t.Context(), conformance.Options{Release: folder})
		NewWithT(t).Expect(err).To(HaveOccurred())
	}
}

// TestUnknownRelease: if neither the folder nor the options tell what a release is, nothing is assumed.
func TestUnknownRelease(t *testing.T) {
	for _, c := range []struct {
		folder   string
		identity conformance.Identity
		want     string
	}{
		{"example/v1.0.0", conformance.Identity{}, "it is not known which provider this is; set --type and --name"},
		{"example/v1.0.0", conformance.Identity{Type: "infra", Name: "example"}, "set --type and --name"},
		{"infrastructure-example/out", conformance.Identity{}, "it is not known which version this is"},
	} {
		folder := filepath.Join(t.TempDir(), c.folder)
		NewWithT(t).Expect(os.CopyFS(folder, os.DirFS(filepath.Join(sample, "v1.0.0")))).To(Succeed())

		_, err := (&conformance.Environment{}).Check(t.Context(),
			conformance.Options{Release: folder, Identity: c.identity})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.want)))
	}
}

// rules returns the rules that a release breaks, without those of the level info.
func rules(t *testing.T, e *conformance.Environment, o conformance.Options) []string {
	t.Helper()

	findings, err := e.Check(t.Context(), o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	var names []string

	for _, f := range findings {
		if f.Line > 0 {
			NewWithT(t).Expect(f.File).To(BeAnExistingFile(), f.Message)
		}

		if f.Accepted == "" && f.Level != lint.Info {
			t.Logf("%s: %s %s %s", f.Rule, f.Kind, f.Object, f.Message)

			names = append(names, f.Rule)
		}
	}

	return names
}

// broken copies a version of a sample as a provider of its own, with replacements in one file, and returns its
// folder.
func broken(t *testing.T, sample, name, version, file string, oldnew ...string) string {
	t.Helper()

	g := NewWithT(t)
	kindOfProvider := strings.TrimSuffix(filepath.Base(sample), "-example")
	folder := filepath.Join(t.TempDir(), kindOfProvider+"-"+name, version)
	g.Expect(os.MkdirAll(folder, 0o755)).To(Succeed())

	for _, published := range []string{kindOfProvider + "-components.yaml", "metadata.yaml"} {
		data, err := os.ReadFile(filepath.Join(sample, version, published))
		g.Expect(err).NotTo(HaveOccurred())

		text := string(data)

		if published == file {
			for i := 0; i < len(oldnew); i += 2 {
				g.Expect(text).To(ContainSubstring(oldnew[i]))
			}

			text = strings.NewReplacer(oldnew...).Replace(text)
		}

		g.Expect(os.WriteFile(filepath.Join(folder, published), []byte(renamed(text, name)), 0o600)).To(Succeed())
	}

	return folder
}

// renamed returns a text of a sample for a provider of another name, which has kinds of its own.
func renamed(text, name string) string {
	return strings.NewReplacer(
		"EXAMPLE_", strings.ToUpper(name)+"_", "Example", strings.ToUpper(name[:1])+name[1:],
		"example.com", "example.com", "example", name,
	).Replace(text)
}
