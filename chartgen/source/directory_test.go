package source

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// releaseFolder returns the folder of a version with metadata and the given files, each of which contains
// its own name.
func releaseFolder(t *testing.T, label, version string, files ...string) string {
	t.Helper()

	g := NewWithT(t)
	folder := filepath.Join(t.TempDir(), label, version)
	g.Expect(os.MkdirAll(folder, 0o755)).To(Succeed())

	for _, name := range slices.Concat(files, []string{bundle.MetadataFile}) {
		g.Expect(os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600)).To(Succeed())
	}

	return folder
}

func TestComponentsOfSeveralProviders(t *testing.T) {
	capi := []string{"bootstrap-components.yaml", "control-plane-components.yaml", "core-components.yaml"}
	untyped := slices.Concat(capi, []string{"components.yaml"})

	for name, c := range map[string]struct {
		label   string
		files   []string
		want    string
		message string
	}{
		"the file of the type":           {label: "bootstrap-kubeadm", files: capi, want: "bootstrap-components.yaml"},
		"the file of core":               {label: "cluster-api", files: capi, want: "core-components.yaml"},
		"the only file, of another name": {label: "addon-x", files: capi[:1], want: "bootstrap-components.yaml"},
		"a file without the type":        {label: "addon-x", files: untyped, want: "components.yaml"},
		"several of other types": {label: "addon-x", files: capi, message: "has several files with components: " +
			"bootstrap-components.yaml, control-plane-components.yaml, core-components.yaml; " +
			"name that of addon-x addon-components.yaml"},
		"none": {label: "addon-x", message: "has no *-components.yaml, but only metadata.yaml; add that of v1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d, err := NewDirectory(filepath.Dir(releaseFolder(t, c.label, "v1.0.0", c.files...)))
			g.Expect(err).NotTo(HaveOccurred())

			b, err := d.Fetch(t.Context(), Version{Name: "v1.0.0", ID: "v1.0.0"})
			if c.message != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.message)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(b.Components)).To(Equal(c.want))

			files := map[string][]byte{}
			for _, file := range c.files {
				files[imageFolder+"/"+file] = []byte(file)
			}

			g.Expect(Components(d.Provider, slices.Collect(maps.Keys(releaseOf(files))))).To(Equal(c.want), "in an image")
		})
	}
}

func TestComponentsFileOfAnAddress(t *testing.T) {
	ours := Provider("AddonProvider", "ours")

	for name, c := range map[string]struct{ address, requested, version, components string }{
		"the version in the address": {"v1.0.0/my-own.yaml", "", "v1.0.0", "my-own.yaml"},
		"another version":            {"v1.0.0/my-own.yaml", "v2.0.0", "v2.0.0", "my-own.yaml"},
		"the newest":                 {"latest/my-own.yaml", "", "v2.0.0", "my-own.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			root := filepath.Dir(releaseFolder(t, "any", "v1.0.0", "my-own.yaml", "addon-components.yaml"))
			g.Expect(os.CopyFS(filepath.Join(root, "v2.0.0"), os.DirFS(filepath.Join(root, "v1.0.0")))).To(Succeed())

			d := NewComponentsFile(filepath.Join(root, c.address), ours)
			version, err := d.Resolve(t.Context(), Request{Version: c.requested})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(version.Name).To(Equal(c.version))

			b, err := d.Fetch(t.Context(), version)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(b.Components)).To(Equal(c.components))
			g.Expect(b.Provider).To(Equal(ours))
		})
	}

	g := NewWithT(t)
	d := NewComponentsFile(filepath.Join(releaseFolder(t, "any", "v1.0.0", "addon-components.yaml"), "other.yaml"), ours)
	_, err := d.Fetch(t.Context(), Version{Name: "v1.0.0", ID: "v1.0.0"})
	g.Expect(err).To(MatchError(HaveSuffix("has no file other.yaml, which the address of the provider names")))
}

func TestDirectoryFollowsLinksOnlyWithinTheFolder(t *testing.T) {
	for name, c := range map[string]struct{ target, message string }{
		"within, as in a mounted ConfigMap": {target: "..data/infrastructure-components.yaml"},
		"to a file elsewhere":               {target: "../../secret", message: "path escapes from parent"},
		"to an absolute path":               {target: "/etc/hostname", message: "path escapes from parent"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			folder := releaseFolder(t, "infrastructure-x", "v1.0.0")

			g.Expect(os.Mkdir(filepath.Join(folder, "..data"), 0o755)).To(Succeed())

			for _, file := range []string{"..data/infrastructure-components.yaml", "../../secret"} {
				g.Expect(os.WriteFile(filepath.Join(folder, file), []byte("content"), 0o600)).To(Succeed())
			}

			g.Expect(os.Symlink(c.target, filepath.Join(folder, "infrastructure-components.yaml"))).To(Succeed())

			d, err := NewDirectory(filepath.Dir(folder))
			g.Expect(err).NotTo(HaveOccurred())

			b, err := d.Fetch(t.Context(), Version{Name: "v1.0.0", ID: "v1.0.0"})
			if c.message != "" {
				g.Expect(err).To(MatchError(And(ContainSubstring(c.message), ContainSubstring(folder))))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(b.Components).To(BeEquivalentTo("content"))
		})
	}
}
