package charts

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/object"
)

// writeFiles writes the files of releases to a local repository of clusterctl, and prints how its configuration names
// them.
func (o *mirrorOptions) writeFiles(releases []*published) error {
	if err := os.MkdirAll(o.files, 0o755); err != nil {
		return err
	}

	// Charts of others name versions and files: none of them leads out of the folder.
	root, err := os.OpenRoot(o.files)
	if err != nil {
		return err
	}
	defer root.Close()

	folder, err := filepath.Abs(o.files)
	if err != nil {
		return err
	}

	var providers strings.Builder

	for _, r := range releases {
		label, version := r.built.Metadata.Name, r.built.Metadata.AppVersion
		kind, name := v1alpha2.ParseLabel(label)
		components := filepath.Join(label, version, kind.ComponentsFile())

		files := chartgen.Published(r.built)
		if r.bundle != nil {
			files = append(files, bundle.File{Name: kind.ComponentsFile(), Data: r.bundle.Components})
		}

		if err := writeAll(root, path.Join(label, version), files); err != nil {
			return err
		}

		fmt.Fprintf(&providers, "\n- name: %s\n  type: %s\n  url: %s", name, kind, filepath.Join(folder, components))
	}

	o.Printf("%s has the files of %s. Name them in clusterctl's configuration:", o.files,
		object.Count(len(releases), "provider"))
	o.Printf("providers:%s", providers.String())

	return nil
}

// writeAll writes files to a folder, which is created.
func writeAll(root *os.Root, folder string, files []bundle.File) error {
	if err := root.MkdirAll(folder, 0o755); err != nil {
		return err
	}

	for _, f := range files {
		if err := root.WriteFile(path.Join(folder, f.Name), f.Data, 0o644); err != nil {
			return err
		}
	}

	return nil
}
