package helm_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/helm"
)

// TestManifest checks the manifest and the notes of rendered files.
func TestManifest(t *testing.T) {
	const (
		widget    = "kind: Widget\nmetadata: {name: w}"
		configMap = "kind: ConfigMap\nmetadata: {name: c}"
		namespace = "kind: Namespace\nmetadata: {name: n}"
	)

	for name, c := range map[string]struct {
		files           map[string]string
		manifest, notes string
	}{
		"kinds in the order of installation, unknown ones last": {
			files: map[string]string{"x/templates/a.yaml": widget + "\n---\n" + configMap, "x/templates/b.yaml": namespace},
			manifest: "---\n# Source: x/templates/b.yaml\n" + namespace + "\n---\n# Source: x/templates/a.yaml\n" + configMap +
				"\n---\n# Source: x/templates/a.yaml\n" + widget + "\n",
		},
		"no empty documents and files": {
			files:    map[string]string{"x/templates/a.yaml": "---\n" + configMap + "\n---\n\n", "x/templates/b.yaml": " \n"},
			manifest: "---\n# Source: x/templates/a.yaml\n" + configMap + "\n",
		},
		"notes": {files: map[string]string{"x/templates/NOTES.txt": "hello"}, notes: "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			manifest, notes, err := helm.Manifest("x", c.files)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.ReplaceAll(manifest, "\n\n", "\n")).To(Equal(c.manifest), "Helm 4 adds empty lines")
			g.Expect(notes).To(Equal(c.notes))
		})
	}
}
