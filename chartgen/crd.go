package chartgen

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// annotationInjectCA is where cert-manager reads, as namespace/name, whose certificate to trust.
const annotationInjectCA = "cert-manager.io/inject-ca-from"

// conversionService is where a CRD says which Service converts its objects.
var conversionService = []string{"spec", "conversion", "webhook", "clientConfig", "service"}

// crdFile is a CRD as it goes to crds/, which Helm does not render: its text with clusterctl's
// labels. Expressions are replaced by their defaults, since nothing could give them a value later;
// a required variable is therefore refused.
func crdFile(doc *bundle.Document, label string) ([]byte, error) {
	for _, v := range doc.Text.Variables() {
		if v.Required {
			return nil, &bundle.InvalidError{File: bundle.ComponentsFile, Line: doc.Line, Reason: fmt.Sprintf(
				"%s uses the variable %s without a default; CRDs are the same for every release, so give it a default",
				doc,
				v.Name,
			)}
		}
	}

	text, err := doc.Text.Expand(nil)
	if err != nil {
		return nil, &bundle.InvalidError{File: bundle.ComponentsFile, Line: doc.Line, Reason: err.Error(), Err: err}
	}

	if edited, ok := insertLabels(text, label); ok {
		return []byte(edited), nil
	}

	return relabel(text, label)
}

// insertLabels writes clusterctl's labels into the text of an object in block style and leaves
// every other line as it is: a CRD is up to 1.7 MB, and its text is what people compare. It reports
// false when the metadata has another shape.
func insertLabels(text, label string) (string, bool) {
	head, rest, found := cutLine(text, "metadata:")
	if !found {
		return "", false
	}

	block, tail := leadingBlock(rest)
	indent := indentation(block)

	before, after, found := cutLine(block, indent+"labels:")
	if indent == "" || !found && strings.Contains("\n"+block, "\n"+indent+"labels") {
		return "", false
	}

	if !found {
		return head + "metadata:\n" + labelLines(indent, indent+"  ", label) + block + tail, true
	}

	inner := indentation(after)
	if len(inner) <= len(indent) {
		return "", false
	}

	return head + "metadata:\n" + before + labelLines(indent, inner, label) + withoutLabels(after, inner) + tail, true
}

func labelLines(indent, inner, label string) string {
	return fmt.Sprintf(
		"%slabels:\n%s%s: \"\"\n%s%s: %s\n",
		indent,
		inner,
		v1alpha2.ClusterctlLabel,
		inner,
		v1alpha2.ClusterctlProviderLabel,
		label,
	)
}

// withoutLabels leaves out the lines that set clusterctl's labels at the given indentation.
func withoutLabels(block, indent string) string {
	var kept strings.Builder

	for line := range strings.Lines(block) {
		key, _, _ := strings.Cut(strings.TrimPrefix(line, indent), ":")
		if key = strings.Trim(key, `"'`); key != v1alpha2.ClusterctlLabel && key != v1alpha2.ClusterctlProviderLabel {
			kept.WriteString(line)
		}
	}

	return kept.String()
}

// cutLine cuts text around the first line that reads as given.
func cutLine(text, line string) (before, after string, found bool) {
	if rest, ok := strings.CutPrefix(text, line+"\n"); ok {
		return "", rest, true
	}

	before, after, found = strings.Cut(text, "\n"+line+"\n")

	return before + "\n", after, found
}

// leadingBlock cuts text before its first line that is not indented.
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

func indentation(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, " "))]
}

// relabel sets clusterctl's labels on an object whose text is not in block style, and so writes all
// of it anew.
func relabel(text, label string) ([]byte, error) {
	object, err := readObject([]byte(text))
	if err != nil {
		return nil, err
	}

	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}

	labels[v1alpha2.ClusterctlLabel], labels[v1alpha2.ClusterctlProviderLabel] = "", label
	object.SetLabels(labels)

	return yaml.Marshal(object.Object)
}

// readObject reads an object and leaves integers integers, however large.
func readObject(text []byte) (*unstructured.Unstructured, error) {
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}

	object := &unstructured.Unstructured{}

	return object, object.UnmarshalJSON(data)
}

// JoinCRDs makes one file of a chart's CRDs, for kubectl apply --server-side. With a namespace,
// conversion webhooks are called and certificates taken from there; with none, in the provider's
// default namespace, where the chart's own CRDs have them.
func JoinCRDs(c *chart.Chart, namespace string) ([]byte, error) {
	var out bytes.Buffer

	for _, f := range c.CRDs {
		data := f.Data

		if namespace != "" {
			var err error
			if data, err = moveCRD(data, namespace); err != nil {
				return nil, fmt.Errorf("chart %s: %s: %w", c.Metadata.Name, f.Name, err)
			}
		}

		fmt.Fprintf(&out, "---\n%s\n", bytes.TrimSpace(data))
	}

	return out.Bytes(), nil
}

// moveCRD makes a CRD refer to a namespace; one that refers to none stays as it is written.
func moveCRD(data []byte, namespace string) ([]byte, error) {
	object, err := readObject(data)
	if err != nil {
		return nil, err
	}

	annotations := object.GetAnnotations()
	_, certificate, annotated := strings.Cut(annotations[annotationInjectCA], "/")

	_, converted, _ := unstructured.NestedMap(object.Object, conversionService...)
	if !annotated && !converted {
		return data, nil
	}

	if annotated {
		annotations[annotationInjectCA] = namespace + "/" + certificate
		object.SetAnnotations(annotations)
	}

	if converted {
		if err := unstructured.SetNestedField(
			object.Object,
			namespace,
			append(slices.Clone(conversionService), "namespace")...); err != nil {
			return nil, err
		}
	}

	return yaml.Marshal(object.Object)
}
