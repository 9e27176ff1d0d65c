package lint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// parsedBundle is the input of the checks: a bundle and its parsed files.
type parsedBundle struct {
	*bundle.Bundle
	// contract is the contract of the version by metadata.yaml, or empty if it lists none.
	contract       string
	parsedMetadata *clusterctlv1.Metadata
	metadataErr    error
	componentsFile file
	templateFiles  []file
	crds           []*crd
	// scopes are those of the kinds of Kubernetes and of the CRDs.
	scopes    bundle.Scopes
	workloads []workload
	// names contains the names of the components' objects by kind.
	names map[string]map[string]bool
}

// file is a published file of objects.
type file struct {
	name      string
	documents []bundle.Document
	variables []expr.Variable
	// err is why the file cannot be parsed. There are no documents then.
	err error
}

func newParsedBundle(b *bundle.Bundle, components *bundle.Components) *parsedBundle {
	p := &parsedBundle{Bundle: b, scopes: bundle.Scopes{}, names: map[string]map[string]bool{}}

	p.parsedMetadata, p.metadataErr = bundle.ParseMetadata(b.Metadata)
	if p.metadataErr == nil {
		p.contract, _ = bundle.Contract(p.parsedMetadata, b.Version)
	}

	p.componentsFile = newFile(bundle.ComponentsFile, b.Components, components)
	for i := range p.componentsFile.documents {
		doc := &p.componentsFile.documents[i]

		kind := doc.Object.GetKind()
		if p.names[kind] == nil {
			p.names[kind] = map[string]bool{}
		}

		p.names[kind][doc.Object.GetName()] = true
		if doc.IsCRD() {
			p.crds = append(p.crds, newCRD(doc))
			p.scopes.Add(doc.Object.Object)
		}

		if bundle.RunsPods(doc.Object.Object) {
			p.workloads = append(p.workloads, newWorkload(doc))
		}
	}

	assignResources(p.providerType(), p.crds)

	for _, t := range b.Templates {
		p.templateFiles = append(p.templateFiles, newTemplateFile(t))
	}

	return p
}

func (p *parsedBundle) providerType() v1alpha2.ProviderType {
	return v1alpha2.ProviderType(p.Provider.Type)
}

// newFile parses a file, unless its parsed content is given.
func newFile(name string, data []byte, parsed *bundle.Components) file {
	if parsed == nil {
		var err error
		if parsed, err = bundle.ParseComponents(data); err != nil {
			return file{name: name, err: err}
		}
	}

	return file{name: name, documents: parsed.Documents, variables: parsed.Variables}
}

// whole returns the location of the whole file.
func (f *file) whole() place { return place{File: f.name} }

// at returns the location of an object.
func (f *file) at(doc *bundle.Document) place {
	return place{File: f.name, Kind: doc.Object.GetKind(), Object: written(doc.Object.GetName())}
}

// reportOnce reports a problem that several objects have in common once, for the first of them: a
// problem of one object is often a problem of all objects of its kind.
func (f *file) reportOnce(report reporter, docs []*bundle.Document, message string) {
	if others := len(docs) - 1; others > 0 {
		message += "; the same applies to " + plural(others, "other object")
	}

	report(f.at(docs[0]), "%s", message)
}

// plural formats a number with its noun, for example "2 variables".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}

	return fmt.Sprintf("%d %ss", n, noun)
}

// reportInvalid reports the error of a parser.
func reportInvalid(report reporter, file string, err error) {
	reason := err.Error()

	var invalid *bundle.InvalidError
	if errors.As(err, &invalid) {
		reason = invalid.Reason

		if invalid.Line > 0 {
			reason = fmt.Sprintf("line %d: %s", invalid.Line, reason)
		}
	}

	report(place{File: file}, "%s", reason)
}

// has reports whether the components contain an object.
func (p *parsedBundle) has(kind, name string) bool { return p.names[kind][name] }

// objects returns the objects of the given kinds in the components.
func (p *parsedBundle) objects(kinds ...string) []*bundle.Document {
	var found []*bundle.Document

	for i := range p.componentsFile.documents {
		doc := &p.componentsFile.documents[i]
		if slices.Contains(kinds, doc.Object.GetKind()) {
			found = append(found, doc)
		}
	}

	return found
}

// isUnresolved reports whether a value depends on a variable without a default, and so is unknown.
func isUnresolved(value string) bool { return strings.Contains(value, bundle.Placeholder) }

// findCRD returns the CRD of a kind; nil if there is none.
func (p *parsedBundle) findCRD(group, kind string) *crd {
	i := slices.IndexFunc(p.crds, func(c *crd) bool { return c.Group == group && c.Kind == kind })
	if i < 0 {
		return nil
	}

	return p.crds[i]
}

// workload is an object that runs Pods.
type workload struct {
	doc        *bundle.Document
	podSpec    map[string]any
	podLabels  map[string]any
	containers []map[string]any // init containers first
}

func newWorkload(doc *bundle.Document) workload {
	template := bundle.PodTemplate(doc.Object.Object)

	return workload{
		doc:        doc,
		podSpec:    bundle.NestedMap(template, "spec"),
		podLabels:  bundle.NestedMap(template, "metadata", "labels"),
		containers: bundle.Containers(doc.Object.Object),
	}
}

// nestedStrings returns a list of strings; nil if it has other items.
func nestedStrings(object map[string]any, fields ...string) []string {
	list, _, _ := unstructured.NestedStringSlice(object, fields...)
	return list
}
