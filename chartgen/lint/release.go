package lint

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// release is a bundle taken apart for the checks.
type release struct {
	*bundle.Bundle
	// contract is what metadata.yaml gives the version; empty when it gives none.
	contract    string
	metadata    *bundle.Metadata
	metadataErr error
	components  file
	templates   []file
	crds        []crd
	// names are the names of the components' objects by kind.
	names map[string]map[string]bool
}

// file is a published file of objects.
type file struct {
	name      string
	lines     []string
	documents []bundle.Document
	variables []expr.Variable
	// err says why there are no documents.
	err error
}

func newRelease(b *bundle.Bundle, c *bundle.Components) *release {
	r := &release{Bundle: b, names: map[string]map[string]bool{}}

	r.metadata, r.metadataErr = bundle.ParseMetadata(b.Metadata)
	if r.metadataErr == nil {
		r.contract, _ = r.metadata.Contract(b.Version)
	}

	r.components = newFile(bundle.ComponentsFile, b.Components, c)
	for i := range r.components.documents {
		doc := &r.components.documents[i]

		kind := doc.Object.GetKind()
		if r.names[kind] == nil {
			r.names[kind] = map[string]bool{}
		}

		r.names[kind][doc.Object.GetName()] = true
		if doc.IsCRD() {
			r.crds = append(r.crds, newCRD(doc))
		}
	}

	for _, t := range b.Templates {
		r.templates = append(r.templates, newFile(t.Name, t.Data, nil))
	}

	return r
}

// newFile takes a file apart; c is its content when somebody has parsed it before.
func newFile(name string, data []byte, c *bundle.Components) file {
	f := file{name: name, lines: strings.Split(string(data), "\n")}
	if c == nil {
		if c, f.err = bundle.ParseComponents(data); f.err != nil {
			return f
		}
	}

	f.documents, f.variables = c.Documents, c.Variables

	return f
}

// whole is the file as a place.
func (f *file) whole() place { return place{file: f.name} }

// at is the place in a document where the needles are found one after the other; needles that are
// not there count as found where the search stands, at worst on the document's first line.
func (f *file) at(doc *bundle.Document, needles ...string) place {
	line := doc.Line
	for _, needle := range needles {
		for n := line; n <= len(f.lines) && !strings.HasPrefix(f.lines[n-1], "---"); n++ {
			if strings.Contains(f.lines[n-1], needle) {
				line = n
				break
			}
		}
	}

	return place{file: f.name, line: line, kind: doc.Object.GetKind(), object: f.objectName(doc)}
}

// objectName is an object's name for people: as it is written when it depends on a variable.
func (f *file) objectName(doc *bundle.Document) string {
	name := doc.Object.GetName()
	if !open(name) {
		return name
	}

	inMetadata := false
	for _, line := range f.lines[min(doc.Line-1, len(f.lines)):] {
		inMetadata = inMetadata || strings.HasPrefix(line, "metadata:")
		if written, ok := strings.CutPrefix(strings.TrimSpace(line), "name:"); ok && inMetadata {
			return strings.Trim(strings.TrimSpace(written), `"'`)
		}
	}

	return name
}

// each reports what several objects have in common once, at the first of them. Where one object of
// a release is wrong, all of its sort tend to be.
func (f *file) each(report reporter, docs []*bundle.Document, needle, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if others := len(docs) - 1; others > 0 {
		message += ", and so " + count(others, "other object")
	}

	report(f.at(docs[0], needle), "%s", message)
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}

	return fmt.Sprintf("%d %ss", n, noun)
}

// invalid is the place that a parser's error names, and what it says of it.
func invalid(file string, err error) (place, string) {
	var e *bundle.InvalidError
	if errors.As(err, &e) {
		return place{file: file, line: e.Line}, e.Reason
	}

	return place{file: file}, err.Error()
}

// spurious reports whether a file may be wrong only because of the placeholders that stand in for its
// variables.
func (f *file) spurious(data []byte) bool {
	var syntax *expr.SyntaxError
	return !errors.As(f.err, &syntax) && bytes.Contains(data, []byte("${"))
}

// has reports whether the components bring an object.
func (r *release) has(kind, name string) bool { return r.names[kind][name] }

// objects lists the components' objects of some kinds.
func (r *release) objects(kinds ...string) []*bundle.Document {
	var found []*bundle.Document

	for i := range r.components.documents {
		if doc := &r.components.documents[i]; slices.Contains(kinds, doc.Object.GetKind()) {
			found = append(found, doc)
		}
	}

	return found
}

// open reports whether a value depends on a variable that has no default, so that nobody knows it yet.
func open(value string) bool { return strings.Contains(value, bundle.Placeholder) }

// value is a field of an object, nil when there is none.
func value(object map[string]any, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	return v
}

// text is a field that holds text.
func text(object map[string]any, path ...string) string {
	s, _ := value(object, path...).(string)
	return s
}

// mapping is a field that holds a mapping.
func mapping(object map[string]any, path ...string) map[string]any {
	m, _ := value(object, path...).(map[string]any)
	return m
}

// mappings are the items of a field that is a list of mappings.
func mappings(object map[string]any, path ...string) []map[string]any {
	list, _ := value(object, path...).([]any)

	var items []map[string]any

	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			items = append(items, m)
		}
	}

	return items
}

// texts are the items of a field that is a list of texts.
func texts(object map[string]any, path ...string) []string {
	list, _ := value(object, path...).([]any)

	var items []string

	for _, item := range list {
		if s, ok := item.(string); ok {
			items = append(items, s)
		}
	}

	return items
}

// workload is an object that runs Pods.
type workload struct {
	doc *bundle.Document
	pod map[string]any // its Pods' spec
	// labels of its Pods
	labels map[string]any
}

// podTemplates says where each kind keeps its Pods' template.
var podTemplates = map[string][]string{
	"Deployment": {"spec", "template"}, "StatefulSet": {"spec", "template"}, "DaemonSet": {"spec", "template"},
	"Job": {"spec", "template"}, "CronJob": {"spec", "jobTemplate", "spec", "template"}, "Pod": {},
}

func (r *release) workloads() []workload {
	var found []workload

	for i := range r.components.documents {
		doc := &r.components.documents[i]
		if path, ok := podTemplates[doc.Object.GetKind()]; ok {
			template := mapping(doc.Object.Object, path...)
			found = append(found, workload{doc, mapping(template, "spec"), mapping(template, "metadata", "labels")})
		}
	}

	return found
}

// containers of the workload's Pods, those that run first included.
func (w workload) containers() []map[string]any {
	return slices.Concat(mappings(w.pod, "initContainers"), mappings(w.pod, "containers"))
}
