package chartgen

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/blockyaml"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// crdFile returns the file of a CRD in crds/: its text with clusterctl's labels. Helm does not
// render these files, so expressions are replaced by their defaults, and a required variable is an
// error.
func crdFile(doc *bundle.Document, label string) ([]byte, error) {
	for _, v := range doc.Text.Variables() {
		if v.Required {
			return nil, &bundle.InvalidError{File: bundle.ComponentsFile, Line: doc.Line, Reason: fmt.Sprintf(
				"%s uses the variable %s, which has no default; Helm does not render CRDs, so give the variable a default",
				doc, v.Name)}
		}
	}

	text, err := doc.Text.Expand(nil)
	if err != nil {
		return nil, &bundle.InvalidError{File: bundle.ComponentsFile, Line: doc.Line, Reason: err.Error(), Err: err}
	}

	text = bundle.Normalize(text)

	// Helm and kubectl read the file with a library that mistakes byte order marks, unless they are written as
	// escape sequences.
	edited, ok := insertLabels(text, label)
	if ok && !blockyaml.HasMark(text) && isRelabelled(edited, text, label) {
		return []byte(edited), nil
	}

	data, err := relabel(text, label)
	if err != nil {
		return nil, &bundle.InvalidError{
			File: bundle.ComponentsFile, Line: doc.Line, Reason: fmt.Sprintf("%s %v", doc, err), Err: err,
		}
	}

	return data, nil
}

// insertLabels writes clusterctl's labels into the text of an object and keeps every other line:
// parsing and writing a CRD of up to 1.7 MB would be slow, and would hide in a diff what changed.
// It reports false if the metadata is not in block style. It does not understand YAML, so the result
// must be parsed and checked.
func insertLabels(text, label string) (string, bool) {
	head, rest, found := cutLine(text, "metadata:")
	if !found {
		return "", false
	}

	block, tail := leadingBlock(rest)
	indent := indentation(block)

	before, after, found := cutLine(block, indent+"labels:")
	flowStyle := !found && strings.Contains("\n"+block, "\n"+indent+"labels")

	if indent == "" || flowStyle {
		return "", false
	}

	if !found {
		return head + "metadata:\n" + labelLines(indent, indent+"  ", label) + block + tail, true
	}

	inner := indentation(after)
	if len(inner) <= len(indent) {
		return "", false
	}

	kept, ok := withoutLabels(after, inner)

	return head + "metadata:\n" + before + labelLines(indent, inner, label) + kept + tail, ok
}

// isRelabelled reports whether an edited text is the object in the original text with clusterctl's
// labels. It leaves out the schemas, which are the same text in both.
func isRelabelled(edited, original, label string) bool {
	want, err := bundle.OutlineObject(original)
	if err != nil {
		return false
	}

	setLabels(&unstructured.Unstructured{Object: want}, label)

	got, err := bundle.OutlineObject(edited)

	return err == nil && reflect.DeepEqual(got, want)
}

// labelLines returns the field "labels" with clusterctl's labels.
func labelLines(indent, inner, label string) string {
	return indent + "labels:\n" +
		inner + v1alpha2.ClusterctlLabel + ": \"\"\n" +
		inner + v1alpha2.ClusterctlProviderLabel + ": " + label + "\n"
}

// withoutLabels removes the lines that set clusterctl's labels at the given indentation. It reports
// false if such a line has an anchor, to which a schema may refer.
func withoutLabels(block, indent string) (rest string, ok bool) {
	var kept strings.Builder

	for line := range strings.Lines(block) {
		key, value, _ := strings.Cut(strings.TrimPrefix(line, indent), ":")
		key = strings.Trim(key, `"'`)

		if key != v1alpha2.ClusterctlLabel && key != v1alpha2.ClusterctlProviderLabel {
			kept.WriteString(line)
		} else if strings.Contains(value, "&") {
			return "", false
		}
	}

	return kept.String(), true
}

// cutLine cuts text around the first line that equals the given one.
func cutLine(text, line string) (before, after string, found bool) {
	if rest, ok := strings.CutPrefix(text, line+"\n"); ok {
		return "", rest, true
	}

	before, after, found = strings.Cut(text, "\n"+line+"\n")

	return before + "\n", after, found
}

// leadingBlock splits text before its first line that is not indented.
func leadingBlock(text string) (block, rest string) {
	end := 0

	for line := range strings.Lines(text) {
		if line[0] != ' ' && line[0] != '\n' {
			break
		}

		end += len(line)
	}

	return text[:end], text[end:]
}

// indentation returns the spaces at the beginning of text.
func indentation(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, " "))]
}

// relabel parses an object, sets clusterctl's labels, and writes it again.
func relabel(text, label string) ([]byte, error) {
	object, err := readObject([]byte(text))
	if err != nil {
		return nil, err
	}

	setLabels(object, label)

	return yaml.Marshal(object.Object)
}

// setLabels sets clusterctl's labels.
func setLabels(object *unstructured.Unstructured, label string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}

	labels[v1alpha2.ClusterctlLabel] = ""
	labels[v1alpha2.ClusterctlProviderLabel] = label
	object.SetLabels(labels)
}

// readObject parses an object and keeps large integers exact.
func readObject(text []byte) (*unstructured.Unstructured, error) {
	data, err := blockyaml.ToJSON(string(text))
	if err != nil {
		return nil, err
	}

	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, err
	}

	return object, limit.Depth(object.Object)
}

// NameCRDs returns CRDs in files that are named after them: the names of files in a chart are shorter than those of
// some objects. Of definitions with the same name, the last one counts.
func NameCRDs(files []chart.File) []chart.File {
	named := make([]chart.File, 0, len(files))

	for _, f := range files {
		crd, err := bundle.OutlineObject(string(f.Data))
		if name := bundle.NestedString(crd, "metadata", "name"); err == nil && name != "" {
			f.Name = "crds/" + name + ".yaml"
		}

		named = slices.DeleteFunc(named, func(other chart.File) bool { return other.Name == f.Name })
		named = append(named, f)
	}

	return named
}

// JoinCRDs joins the CRDs of a chart into one file for kubectl apply --server-side. If a namespace
// is given, conversion webhooks and certificates are taken from there, otherwise from the
// provider's default namespace, to which the chart's CRDs refer.
func JoinCRDs(c *chart.Chart, namespace string) ([]byte, error) {
	var out bytes.Buffer

	for _, f := range c.CRDs {
		data := f.Data

		if namespace != "" {
			var err error
			if data, err = moveCRDFile(data, namespace); err != nil {
				return nil, fmt.Errorf("chart %s: %s: %w", c.Metadata.Name, f.Name, err)
			}
		}

		// White space at the end may be part of a block scalar.
		fmt.Fprintf(&out, "---\n%s", data)

		if !bytes.HasSuffix(data, []byte("\n")) {
			out.WriteString("\n")
		}
	}

	return out.Bytes(), nil
}

// moveCRDFile changes the namespace to which a CRD refers. A CRD without such a reference keeps its
// text.
func moveCRDFile(data []byte, namespace string) ([]byte, error) {
	object, err := readObject(data)
	if err != nil {
		return nil, err
	}

	if !bundle.MoveCRD(object, namespace) {
		return data, nil
	}

	return yaml.Marshal(object.Object)
}
