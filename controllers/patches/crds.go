package patches

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// maxPatchedCRDs limits how many bytes of CRDs all patches together are applied to: a patch without a
// target changes all of a provider's CRDs, which can have megabytes.
const maxPatchedCRDs = 32 << 20

// CRDs are the CRDs of a chart as the patches of a resource change them.
type CRDs struct {
	// Files are all CRDs of the chart. Those that no patch changes are the chart's own.
	Files []chart.File
	// Summary lists the CRDs that are changed, each with a digest of the result. It is empty if none is.
	Summary string

	// matched are the fields of the patches that change CRDs, and identities those of all CRDs.
	matched    map[string]bool
	identities []identity
}

// PatchCRDs applies the patches of a resource to the CRDs of a chart. A patch that matches none of them is
// for other objects. The error is an *Error.
func PatchCRDs(files []chart.File, spec *v1alpha2.ProviderSpec) (*CRDs, error) {
	in := Input{Patches: spec.Patches, ManifestPatches: spec.ManifestPatches}

	patches, err := in.patches()
	if err != nil || len(patches) == 0 {
		return &CRDs{Files: files}, err
	}

	documents := make([]*document, 0, len(files))
	for _, file := range files {
		documents = append(documents, newDocument(file.Data))
	}

	patched := &CRDs{Files: slices.Clone(files), matched: map[string]bool{}}

	size := 0

	for _, p := range patches {
		n, err := p.applyToCRDs(documents)
		if err != nil {
			return nil, err
		}

		patched.matched[p.field] = n > 0

		if size += n; size > maxPatchedCRDs {
			return nil, &Error{Field: p.field, Reason: "the patches change too much of the CustomResourceDefinitions; " +
				"select fewer by target.name, or combine patches"}
		}
	}

	return patched, patched.write(documents)
}

// applyToCRDs changes the CRDs that the target selects, and returns their size in bytes.
func (p *patch) applyToCRDs(documents []*document) (size int, err error) {
	for _, d := range documents {
		if d.Kind == "" || !p.target.matches(d.identity) {
			continue
		}

		id := d.identity
		size += len(d.text)

		if err := p.changeCRD(d); err != nil {
			return size, p.failed(id, err)
		}
	}

	return size, nil
}

// changeCRD changes a CRD, unless it would become another one, or Capstan would no longer know it as the
// provider's.
func (p *patch) changeCRD(d *document) error {
	object, err := d.parse()
	if err != nil {
		return err
	}

	before := fixedFields(object)
	d.object = object

	if err := p.change(d); err != nil {
		return err
	}

	if d.deleted {
		return errors.New("CustomResourceDefinitions are never deleted; spec.crds.unmanaged leaves one as it is")
	}

	after := fixedFields(d.object)

	for _, field := range slices.Sorted(maps.Keys(union(before, after))) {
		if before[field] != after[field] {
			return fmt.Errorf("%s must not be changed", field)
		}
	}

	return nil
}

// fixedFields returns the fields of a CRD that patches must not change, by their names: those that identify
// what it defines, and what tells Capstan whose it is.
func fixedFields(object *kyaml.RNode) map[string]string {
	fields := map[string]string{}

	for _, path := range [][]string{
		{"apiVersion"},
		{"kind"},
		{"metadata", "name"},
		{"spec", "group"},
		{"spec", "scope"},
		{"spec", "names", "kind"},
		{"spec", "names", "plural"},
	} {
		node, err := object.Pipe(kyaml.Lookup(path...))
		if err == nil && node != nil {
			fields[strings.Join(path, ".")] = node.YNode().Value
		}
	}

	for name, value := range object.GetLabels() {
		if name == v1alpha2.ClusterctlProviderLabel || name == v1alpha2.ClusterctlLabel {
			fields["the label "+name] = value
		}
	}

	for name, value := range object.GetAnnotations() {
		if strings.HasPrefix(name, v1alpha2.Prefix+"/") {
			fields["the annotation "+name] = value
		}
	}

	return fields
}

// union returns the entries of two maps; which of the values for a key is not defined.
func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)

	return all
}

// write sets the files to the documents, which are in the same order.
func (c *CRDs) write(documents []*document) error {
	var changed []string

	for i, d := range documents {
		c.identities = append(c.identities, d.identity)

		if d.object == nil {
			continue
		}

		var text bytes.Buffer
		if err := d.write(&text); err != nil {
			return err
		}

		c.Files[i].Data = text.Bytes()

		sum := sha256.Sum256(text.Bytes())
		changed = append(changed, fmt.Sprintf("%s (%x)", d.Metadata.Name, sum[:8]))
	}

	slices.Sort(changed)
	c.Summary = strings.Join(changed, ", ")

	return nil
}

// matches reports whether a patch changes a CRD.
func (c *CRDs) matches(p *patch) bool { return c != nil && c.matched[p.field] }

// beside returns the identities of the objects in a manifest and then those of the CRDs.
func (c *CRDs) beside(documents []*document) []identity {
	var objects []identity

	for _, d := range documents {
		if d.Kind != "" && !d.deleted {
			objects = append(objects, d.identity)
		}
	}

	if c != nil {
		objects = append(objects, c.identities...)
	}

	return objects
}
