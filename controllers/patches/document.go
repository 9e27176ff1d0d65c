package patches

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// document is a YAML document of a manifest.
type document struct {
	identity
	// header holds the separator and the comments before text, such as where it comes from.
	header []byte
	text   []byte
	// object is the patched object; nil if no patch has changed it.
	object *kyaml.RNode
	// deleted reports whether a patch has deleted the object.
	deleted bool
}

// identity holds the fields of an object that selectors look at.
type identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
}

// String returns how messages refer to the object.
func (id identity) String() string {
	if id.Metadata.Namespace == "" {
		return id.Kind + " " + id.Metadata.Name
	}

	return id.Kind + " " + id.Metadata.Namespace + "/" + id.Metadata.Name
}

// groupVersion returns the two parts of the apiVersion. The group of Kubernetes' core API is empty.
func (id identity) groupVersion() (group, version string) {
	group, version, found := strings.Cut(id.APIVersion, "/")
	if !found {
		return "", id.APIVersion
	}

	return group, version
}

// sameObject reports whether two identities are those of one object, possibly in different versions
// of its API.
func (id identity) sameObject(other identity) bool {
	group, _ := id.groupVersion()
	otherGroup, _ := other.groupVersion()

	return group == otherGroup &&
		id.Kind == other.Kind &&
		id.Metadata.Namespace == other.Metadata.Namespace &&
		id.Metadata.Name == other.Metadata.Name
}

// split splits a manifest into its documents, which, joined, are the manifest again.
func split(manifest []byte) [][]byte {
	var documents [][]byte

	start, end := 0, 0
	for line := range bytes.Lines(manifest) {
		if end > start && bytes.HasPrefix(line, []byte("---")) {
			documents = append(documents, manifest[start:end])
			start = end
		}

		end += len(line)
	}

	return append(documents, manifest[start:])
}

// read returns the documents of a manifest.
func read(manifest []byte) []*document {
	texts := split(manifest)
	documents := make([]*document, 0, len(texts))

	for _, text := range texts {
		documents = append(documents, newDocument(text))
	}

	return documents
}

// changeEach changes the objects of all documents that are not deleted. The verb says in errors what that does.
func changeEach(verb string, documents []*document, change func(object *kyaml.RNode) error) error {
	for _, d := range documents {
		if d.deleted || d.Kind == "" {
			continue
		}

		object, err := d.parse()
		if err == nil {
			err = change(object)
		}

		if err == nil {
			err = d.set(object)
		}

		if err != nil {
			return fmt.Errorf("%s %s: %w", verb, d, err)
		}
	}

	return nil
}

// join returns the documents as a manifest, which usually has about the given size in bytes.
func join(documents []*document, size int) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(size)

	for _, d := range documents {
		if err := d.write(&out); err != nil {
			return nil, err
		}
	}

	return out.Bytes(), nil
}

// newDocument reads a document. One that is not an object has no identity, so that no patch matches
// it; the error is reported when the release is installed.
func newDocument(text []byte) *document {
	d := &document{}

	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("#")) {
			break
		}

		d.header = text[:len(d.header)+len(line)]
	}

	d.text = text[len(d.header):]
	d.identity, _ = identify(d.text)

	return d
}

// identify reads the identity of an object in YAML.
func identify(text []byte) (identity, error) {
	var id identity
	if yaml.Unmarshal(identityLines(text), &id) == nil && id.Kind != "" {
		return id, nil
	}

	id = identity{}
	if err := yaml.Unmarshal(text, &id); err != nil {
		return identity{}, err
	}

	return id, nil
}

// identityLines returns the lines with the fields of the identity of an object in block style.
// Parsing only these is many times faster for an object of hundreds of kilobytes.
func identityLines(text []byte) []byte {
	var lines []byte

	wanted := false

	for line := range bytes.Lines(text) {
		// Other lines continue the value of the last key, or are empty or comments.
		isKey := !bytes.ContainsRune([]byte(" \t\r\n-#"), rune(line[0]))
		if isKey {
			wanted = bytes.HasPrefix(line, []byte("apiVersion:")) ||
				bytes.HasPrefix(line, []byte("kind:")) ||
				bytes.HasPrefix(line, []byte("metadata:"))
		}

		if wanted {
			lines = append(lines, line...)
		}
	}

	return lines
}

// parse returns the object, to be modified. Keys keep their order, and values their style.
func (d *document) parse() (*kyaml.RNode, error) {
	if d.object != nil {
		return d.object, nil
	}

	return kyaml.Parse(string(d.text))
}

// set replaces the object by the modified one, which must be valid.
func (d *document) set(object *kyaml.RNode) error {
	if isDeeper(object.YNode(), limit.MaxDepth) {
		return fmt.Errorf("the result has more than %d levels of lists and maps", limit.MaxDepth)
	}

	text, err := object.String()
	if err != nil {
		return err
	}

	if _, err := limit.Document(text); err != nil {
		return fmt.Errorf("the result %w", err)
	}

	id, err := identify([]byte(text))
	if err != nil || id.Kind == "" || id.APIVersion == "" || id.Metadata.Name == "" {
		return errors.New(
			"the result is not an object: it needs apiVersion, kind, metadata.name, and labels that are strings")
	}

	d.object = object
	d.identity = id

	return nil
}

// isDeeper reports whether a node has more levels of lists and maps than the given number. The text of
// a deep object is far larger than the object, because of its indentation.
func isDeeper(node *kyaml.Node, levels int) bool {
	if levels < 0 {
		return true
	}

	if node.Kind != kyaml.DocumentNode && node.Kind != kyaml.ScalarNode {
		levels--
	}

	return slices.ContainsFunc(node.Content, func(child *kyaml.Node) bool { return isDeeper(child, levels) })
}

// write appends the document to a manifest.
func (d *document) write(out *bytes.Buffer) error {
	if d.deleted {
		return nil
	}

	out.Write(d.header)

	if d.object == nil {
		out.Write(d.text)
		return nil
	}

	text, err := d.object.String()
	if err != nil {
		return fmt.Errorf("write %s: %w", d, err)
	}

	out.WriteString(text)

	return nil
}
