package released_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// addedPaths returns the paths in a file that the same file of an earlier version does not have, sorted.
func addedPaths(t *testing.T, before, after []byte) []string {
	t.Helper()

	old, all := pathsOf(t, before), pathsOf(t, after)
	maps.DeleteFunc(all, func(path string, _ bool) bool { return old[path] })

	return slices.Sorted(maps.Keys(all))
}

// pathsOf returns the paths of all fields in a file, those in Helm's records, charts and flags included.
func pathsOf(t *testing.T, file []byte) map[string]bool {
	t.Helper()

	paths := map[string]bool{}

	if strings.HasPrefix(string(file), "apiVersion:") {
		for document := range strings.SplitSeq(string(file), "\n---\n") {
			var value any
			NewWithT(t).Expect(yaml.Unmarshal([]byte(document), &value)).To(Succeed())
			addPaths(t, paths, "", value)
		}
	} else {
		addFiles(t, paths, "", tar.NewReader(bytes.NewReader(file)))
	}

	return paths
}

// addPaths adds the paths of a value.
func addPaths(t *testing.T, paths map[string]bool, path string, value any) {
	t.Helper()

	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			addPaths(t, paths, strings.TrimPrefix(path+"."+key, "."), child)
		}
	case []any:
		for _, child := range value {
			addPaths(t, paths, path+"[]", child)
		}
	case string:
		paths[path] = true

		addEncoded(t, paths, path, value)
	default:
		paths[path] = true
	}
}

// addEncoded adds the paths in values that are documents themselves.
func addEncoded(t *testing.T, paths map[string]bool, path, value string) {
	t.Helper()
	g := NewWithT(t)

	switch path {
	case "data.release": // of a Secret, in which Helm encodes it again
		value = string(decoded(g, string(decoded(g, value))))

		var release any
		g.Expect(json.NewDecoder(unzipped(g, []byte(value))).Decode(&release)).To(Succeed())
		addPaths(t, paths, "release", release)
	case "binaryData.chart":
		addFiles(t, paths, "chart/", tar.NewReader(unzipped(g, decoded(g, value))))
	case "data.flags":
		var flags any
		g.Expect(yaml.Unmarshal([]byte(value), &flags)).To(Succeed())
		addPaths(t, paths, "flags", flags)
	}
}

// addFiles adds the names of the files in an archive without digests, and the paths in Chart.yaml.
func addFiles(t *testing.T, paths map[string]bool, prefix string, archive *tar.Reader) {
	t.Helper()
	g := NewWithT(t)

	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}

		g.Expect(err).NotTo(HaveOccurred())

		data, err := io.ReadAll(archive)
		g.Expect(err).NotTo(HaveOccurred())

		name := header.Name
		if folder, _, isBlob := strings.Cut(name, "sha256/"); isBlob {
			name = folder + "sha256/DIGEST"
		}

		paths[prefix+name] = true

		var content any
		if strings.HasSuffix(name, "/Chart.yaml") || strings.HasSuffix(name, ".json") {
			g.Expect(yaml.Unmarshal(data, &content)).To(Succeed())
			addPaths(t, paths, prefix+name+":", content)
		}
	}
}

func decoded(g *WithT, text string) []byte {
	data, err := base64.StdEncoding.DecodeString(text)
	g.Expect(err).NotTo(HaveOccurred())

	return data
}

func unzipped(g *WithT, data []byte) io.Reader {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	g.Expect(err).NotTo(HaveOccurred())

	return reader
}

func TestAddedPaths(t *testing.T) {
	g := NewWithT(t)

	before := "apiVersion: v1\ndata: {flags: \"a: 1\"}\nlist: [{a: 1}]\n"
	after := "apiVersion: v1\ndata: {flags: \"a: 1\\nb: 2\"}\nlist: [{a: 2}, {b: null}]\nmore: {c: 1}\n"

	g.Expect(addedPaths(t, []byte(before), []byte(after))).To(Equal([]string{"flags.b", "list[].b", "more.c"}))
	g.Expect(addedPaths(t, []byte(after), []byte(before))).To(BeEmpty())
}
