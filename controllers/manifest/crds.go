package manifest

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/object"
)

// CRDs are the CRDs of a chart as the patches of a resource change them.
type CRDs struct {
	// Files are all CRDs of the chart. Those that no patch changes are the chart's own.
	Files []chart.File
	// Summary lists the CRDs that are changed, each with a digest of the result. It is empty if none is.
	Summary string

	// matched are the fields of the patches that change CRDs, and objects all CRDs.
	matched map[string]bool
	objects []*unstructured.Unstructured
}

// PatchCRDs applies the patches of a resource to the CRDs of a chart. A patch that matches none of them is
// for other objects. The error is a *problem.Error.
func PatchCRDs(files []chart.File, spec *v1alpha2.ProviderSpec) (*CRDs, error) {
	patches, err := readPatches(spec.Patches, spec.ManifestPatches)
	if err != nil {
		return nil, err
	}

	patches = slices.DeleteFunc(patches, func(p *patch) bool {
		return p.target.kind != "" && p.target.kind != crdKind
	})
	if len(patches) == 0 {
		return &CRDs{Files: files}, nil
	}

	crds := &CRDs{Files: slices.Clone(files), matched: map[string]bool{}}
	if err := crds.read(); err != nil {
		return nil, err
	}

	changed := map[int]bool{}
	budget := newBudget()

	for _, p := range patches {
		for i, o := range crds.objects {
			if !p.target.matches(o) {
				continue
			}

			key := object.KeyOf(o)

			if crds.objects[i], err = p.changeCRD(o, budget); err != nil {
				return nil, p.failed(key, err)
			}

			crds.matched[p.field], changed[i] = true, true
		}
	}

	return crds, crds.write(slices.Sorted(maps.Keys(changed)))
}

const crdKind = "CustomResourceDefinition"

// read decodes the files, each of which is a CRD.
func (c *CRDs) read() error {
	for _, file := range c.Files {
		content, err := file.JSON()
		if err != nil {
			return fmt.Errorf("%s is not YAML", file.Name) // the cause may quote it
		}

		objects, err := decodeDocument(content)
		if err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}

		if len(objects) != 1 {
			return fmt.Errorf("%s has %d objects instead of one", file.Name, len(objects))
		}

		c.objects = append(c.objects, objects...)
	}

	return nil
}

// changeCRD returns the changed CRD, unless it would become another one, or Capstan would no longer know it as the
// provider's.
func (p *patch) changeCRD(
	o *unstructured.Unstructured, budget *budget,
) (*unstructured.Unstructured, error) {
	before := fixedFields(o)

	changed, err := p.change(o, budget)
	if err != nil {
		return nil, err
	}

	if changed == nil {
		return nil, errors.New("CustomResourceDefinitions are never deleted; spec.crds.unmanaged leaves one as it is")
	}

	after := fixedFields(changed)

	all := maps.Clone(before)
	maps.Copy(all, after)

	for _, field := range slices.Sorted(maps.Keys(all)) {
		if before[field] != after[field] {
			return nil, fmt.Errorf("%s must not be changed", field)
		}
	}

	return changed, nil
}

// fixedFields returns the fields of a CRD that patches must not change, by their names: those that identify
// what it defines, and what tells Capstan whose it is.
func fixedFields(o *unstructured.Unstructured) map[string]string {
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
		fields[strings.Join(path, ".")] = bundle.NestedString(o.Object, path...)
	}

	for name, value := range o.GetLabels() {
		if name == v1alpha2.ClusterctlProviderLabel || name == v1alpha2.ClusterctlLabel {
			fields["the label "+name] = value
		}
	}

	for name, value := range o.GetAnnotations() {
		if strings.HasPrefix(name, v1alpha2.Prefix+"/") {
			fields["the annotation "+name] = value
		}
	}

	return fields
}

// write sets the files of the changed CRDs.
func (c *CRDs) write(changed []int) error {
	var summary []string

	for _, i := range changed {
		text, err := Encode(c.objects[i : i+1])
		if err != nil {
			return err
		}

		content, err := json.Marshal(c.objects[i].Object)
		if err != nil {
			return err
		}

		c.Files[i] = chart.File{Name: c.Files[i].Name, Data: []byte(text)}.WithJSON(content)

		sum := sha256.Sum256(c.Files[i].Data)
		summary = append(summary, fmt.Sprintf("%s (%x)", c.objects[i].GetName(), sum[:8]))
	}

	slices.Sort(summary)
	c.Summary = strings.Join(summary, ", ")

	return nil
}

// matches reports whether a patch changes a CRD.
func (c *CRDs) matches(p *patch) bool { return c != nil && c.matched[p.field] }

// beside returns the objects of a manifest and then the CRDs.
func (c *CRDs) beside(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	if c == nil {
		return objects
	}

	return slices.Concat(objects, c.objects)
}
