package patches

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// document is one YAML document of a manifest.
type document struct {
	identity
	// header is the separator and the comments before the text, such as where it comes from.
	header, text []byte
	// object is the document as patches have left it; nil while none has touched it.
	object *kyaml.RNode
	// deleted says that a patch has removed it.
	deleted bool
}

// identity is what patches find an object by.
type identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
}

// String names the object for people.
func (id identity) String() string {
	if id.Metadata.Namespace == "" {
		return id.Kind + " " + id.Metadata.Name
	}

	return id.Kind + " " + id.Metadata.Namespace + "/" + id.Metadata.Name
}

// groupVersion gives the two parts of the apiVersion; the group of Kubernetes' core API is empty.
func (id identity) groupVersion() (group, version string) {
	if group, version, ok := strings.Cut(id.APIVersion, "/"); ok {
		return group, version
	}

	return "", id.APIVersion
}

// same reports whether the two are one object to the API server, in whatever version of its API.
func (id identity) same(other identity) bool {
	group, _ := id.groupVersion()
	otherGroup, _ := other.groupVersion()

	return group == otherGroup && id.Kind == other.Kind && id.Metadata.Namespace == other.Metadata.Namespace &&
		id.Metadata.Name == other.Metadata.Name
}

// split cuts a manifest into the texts of its documents. Put together, they are the manifest.
func split(manifest []byte) [][]byte {
	var texts [][]byte

	start, pos := 0, 0
	for line := range bytes.Lines(manifest) {
		if pos > start && bytes.HasPrefix(line, []byte("---")) {
			texts = append(texts, manifest[start:pos])
			start = pos
		}

		pos += len(line)
	}

	return append(texts, manifest[start:])
}

func newDocument(text []byte) *document {
	d := &document{}

	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("#")) {
			break
		}

		d.header = text[:len(d.header)+len(line)]
	}

	d.text = text[len(d.header):]
	// What is no object has no identity and is nobody's to patch: the release says what is wrong
	// with it.
	d.identity, _ = identify(d.text)

	return d
}

// identify reads the identity in the text of an object.
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

// identityLines gives the lines of a document's keys that hold its identity: parsing only these is
// many times faster for an object of hundreds of kilobytes, and enough for one written in block
// style.
func identityLines(text []byte) []byte {
	var lines []byte

	wanted := false

	for line := range bytes.Lines(text) {
		// neither inside of a key's value, nor a list's item or a comment
		if !bytes.ContainsRune([]byte(" \t\r\n-#"), rune(line[0])) {
			wanted = bytes.HasPrefix(line, []byte("apiVersion:")) || bytes.HasPrefix(line, []byte("kind:")) ||
				bytes.HasPrefix(line, []byte("metadata:"))
		}

		if wanted {
			lines = append(lines, line...)
		}
	}

	return lines
}

// parse gives the document's object to be changed. Keys keep their order, and values the way they
// are written.
func (d *document) parse() (*kyaml.RNode, error) {
	if d.object != nil {
		return d.object, nil
	}

	return kyaml.Parse(string(d.text))
}

// set takes over the changed object, which must still be one.
func (d *document) set(object *kyaml.RNode) error {
	text, err := object.String()
	if err != nil {
		return err
	}

	id, err := identify([]byte(text))
	if err != nil || id.Kind == "" || id.APIVersion == "" || id.Metadata.Name == "" {
		return errors.New(
			"the result is no object any more: it needs apiVersion, kind, metadata.name and labels that are text",
		)
	}

	d.object, d.identity = object, id

	return nil
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
