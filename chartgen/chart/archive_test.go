package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v3/pkg/chart/loader"
)

func sample(t *testing.T) *Chart {
	c, err := New(Metadata{APIVersion: "v2", Name: "sample", Version: "1.0.0", AppVersion: "v1.0.0"}, []File{
		{Name: "values.yaml", Data: []byte("variables: {}\n")},
		{Name: "templates/b.yaml", Data: []byte("b")},
		{Name: "crds/x.yaml", Data: []byte("x")},
		{Name: "templates/a.yaml", Data: []byte("a")},
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return c
}

func TestRead(t *testing.T) {
	g := NewWithT(t)
	c := sample(t)
	archive, err := c.Archive()
	g.Expect(err).NotTo(HaveOccurred())
	back, err := Read(bytes.NewReader(archive))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(back).To(Equal(c))
	g.Expect(back.CRDs).To(HaveLen(1))
}

func TestArchiveForHelm(t *testing.T) {
	g := NewWithT(t)
	archive, err := sample(t).Archive()
	g.Expect(err).NotTo(HaveOccurred())
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(loaded.Name()).To(Equal("sample"))
	g.Expect(loaded.Templates).To(HaveLen(2))
	g.Expect(loaded.CRDObjects()).To(HaveLen(1))
}

func TestArchiveIsReproducible(t *testing.T) {
	g := NewWithT(t)
	first, err := sample(t).Archive()
	g.Expect(err).NotTo(HaveOccurred())

	shuffled := sample(t)
	shuffled.Files[0], shuffled.Files[2] = shuffled.Files[2], shuffled.Files[0]
	second, err := shuffled.Archive()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Digest(second)).To(Equal(Digest(first)))
}

// TestArchiveBytes: the bytes of an archive are part of the chart format, and the same on every machine. If they
// change, with another version of the compression too, increase chartgen.Version.
func TestArchiveBytes(t *testing.T) {
	g := NewWithT(t)

	var text strings.Builder

	words := strings.Fields("apiVersion: kind: metadata: name: properties: type: description: string integer - {} v1")

	for i := range 50_000 {
		sum := sha256.Sum256([]byte(strconv.Itoa(i / 3)))
		text.WriteString(words[int(sum[i%3])%len(words)])
		text.WriteString([]string{" ", "\n  ", "\n"}[int(sum[3])%3])
	}

	c := sample(t)
	c.CRDs[0].Data = []byte(text.String())

	archive, err := c.Archive()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Digest(archive)).To(Equal("sha256:90a624dec9f386fc4288560519bc0a38b60ced90dc048797af8e71acc460c7f3"))
}

// TestLongNames: the archive holds files whose names have more characters than a header in the format
// USTAR, and is the same each time.
func TestLongNames(t *testing.T) {
	g := NewWithT(t)
	name := "cluster-template-" + strings.Repeat("x", 200) + ".yaml"
	c, err := New(Metadata{APIVersion: "v2", Name: "sample", Version: "1.0.0"}, []File{{Name: name, Data: []byte("x")}})
	g.Expect(err).NotTo(HaveOccurred())

	first, err := c.Archive()
	g.Expect(err).NotTo(HaveOccurred())
	second, err := c.Archive()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Digest(second)).To(Equal(Digest(first)))

	back, err := Read(bytes.NewReader(first))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(back.File(name)).To(Equal([]byte("x")))

	loaded, err := loader.LoadArchive(bytes.NewReader(first))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(loaded.Files).To(ContainElement(HaveField("Name", name)))
}

func TestReadRefusesHostileArchives(t *testing.T) {
	metadata := tarFile{tar.Header{Name: "c/Chart.yaml"}, "name: c\nversion: 1.0.0\n"}
	for name, test := range map[string]struct {
		files   []tarFile
		message string
	}{
		"no Chart.yaml": {
			[]tarFile{{tar.Header{Name: "c/values.yaml"}, "{}"}},
			"no Chart.yaml",
		},
		"path traversal": {
			[]tarFile{metadata, {tar.Header{Name: "c/../../etc/passwd"}, "x"}},
			"is outside the chart's folder",
		},
		"an absolute path": {
			[]tarFile{metadata, {tar.Header{Name: "/etc/passwd"}, "x"}},
			"is outside the chart's folder",
		},
		"no folder": {
			[]tarFile{metadata, {tar.Header{Name: "passwd"}, "x"}},
			"is outside the chart's folder",
		},
		"a symbolic link": {
			[]tarFile{metadata, {tar.Header{Name: "c/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, ""}},
			"is not a regular file",
		},
		"a file larger than its size": {
			[]tarFile{metadata, {tar.Header{Name: "c/big", Size: maxUnpacked + 1}, ""}},
			"larger than 32 MiB",
		},
		"a name that leads out of a folder": {
			[]tarFile{{tar.Header{Name: "c/Chart.yaml"}, "name: ../../elsewhere/c\nversion: 1.0.0\n"}},
			`name "../../elsewhere/c" is not the name of a chart`,
		},
		"the name of a parent folder": {
			[]tarFile{{tar.Header{Name: "c/Chart.yaml"}, "name: ..\nversion: 1.0.0\n"}},
			"is not the name of a chart",
		},
		"a version that leads out of a folder": {
			[]tarFile{{tar.Header{Name: "c/Chart.yaml"}, "name: c\nversion: 1.0.0/../../x\n"}},
			"is not a semantic version",
		},
		"a CRD with too many values": {
			[]tarFile{metadata, {tar.Header{Name: "c/crds/a.yaml"}, "a: [" + strings.Repeat("1,", 110000) + "]"}},
			"crds/a.yaml has a document, number 1, that has more than 100000 values",
		},
		"CRDs with too many values": {
			[]tarFile{
				metadata,
				{tar.Header{Name: "c/crds/a.yaml"}, strings.Repeat("a: ["+strings.Repeat("1,", 80000)+"]\n---\n", 2)},
				{tar.Header{Name: "c/crds/b.yaml"}, strings.Repeat("a: ["+strings.Repeat("1,", 80000)+"]\n---\n", 2)},
			},
			"number 2, that brings the total to more than 300000 values",
		},
		"a schema with too many values": {
			[]tarFile{metadata, {tar.Header{Name: "c/values.schema.json"}, `{"a": [` + strings.Repeat("{},", 60000) + "{}]}"}},
			"values.schema.json has more than 100000 values",
		},
		"metadata with too many values": {
			[]tarFile{{tar.Header{Name: "c/Chart.yaml"}, "name: c\nkeywords: [" + strings.Repeat("a,", 110000) + "]\n"}},
			"Chart.yaml has more than 100000 values",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(pack(t, test.files))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.message)))
		})
	}

	t.Run("too many files", func(t *testing.T) {
		files := []tarFile{metadata}
		for range maxFiles {
			files = append(files, tarFile{tar.Header{Name: "c/x"}, ""})
		}

		_, err := Read(pack(t, files))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("4096 files")))
	})
	t.Run("not an archive", func(t *testing.T) {
		_, err := Read(strings.NewReader("<html>"))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("not gzip")))
	})
}

type tarFile struct {
	header  tar.Header
	content string
}

func pack(t *testing.T, files []tarFile) *bytes.Buffer {
	g := NewWithT(t)

	var out bytes.Buffer

	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)

	for _, f := range files {
		if f.header.Size == 0 {
			f.header.Size = int64(len(f.content))
		}

		g.Expect(w.WriteHeader(&f.header)).To(Succeed())
		_, err := w.Write([]byte(f.content))
		g.Expect(err).NotTo(HaveOccurred())

		if int64(len(f.content)) < f.header.Size {
			g.Expect(zip.Close()).To(Succeed())
			return &out
		}
	}

	g.Expect(w.Close()).To(Succeed())
	g.Expect(zip.Close()).To(Succeed())

	return &out
}

// An archive of nothing but extended headers never reaches an entry, however much it unpacks to.
func TestReadRefusesEndlessHeaders(t *testing.T) {
	g := NewWithT(t)

	var entry bytes.Buffer

	longName := &tar.Header{Name: "c/" + strings.Repeat("x", 300), Format: tar.FormatPAX}
	g.Expect(tar.NewWriter(&entry).WriteHeader(longName)).To(Succeed())
	extended := entry.Bytes()[:entry.Len()-512] // without the header of the entry itself

	var out bytes.Buffer

	zip := gzip.NewWriter(&out)
	for range 3 * maxUnpacked / len(extended) {
		_, err := zip.Write(extended)
		g.Expect(err).NotTo(HaveOccurred())
	}

	g.Expect(zip.Close()).To(Succeed())

	rest := bytes.NewReader(out.Bytes())
	_, err := Read(rest)
	g.Expect(err).To(MatchError(ContainSubstring("larger than 32 MiB")))
	g.Expect(rest.Len()).To(BeNumerically(">", out.Len()/4), "reading stops before the end")
}
