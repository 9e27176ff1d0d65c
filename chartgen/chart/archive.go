package chart

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// Limits of the archives that Read accepts. The largest real provider unpacks to 3.2 MB in 60
// files. CRDs have the limits of the package limit too, because the operator parses them.
const (
	maxUnpacked = 32 << 20
	maxFiles    = 4096
	// maxMetadata limits Chart.yaml, the only file that is parsed.
	maxMetadata = 1 << 20
)

// compressionLevel is the level of gzip, which decides on the bytes of all archives. The next level takes twice the
// time for hardly fewer bytes.
const compressionLevel = 6

var errTooLarge = fmt.Errorf("larger than %d MiB or more than %d files", maxUnpacked>>20, maxFiles)

// Archive packs the chart into a .tgz file that Helm can read. The order of the files, their times,
// owners, and modes are fixed, so the bytes depend only on the chart's files. The header of a file has
// the format USTAR, or PAX if its name is too long for that.
func (c *Chart) Archive() ([]byte, error) {
	var out bytes.Buffer

	zip, err := gzip.NewWriterLevel(&out, compressionLevel)
	if err != nil {
		return nil, err
	}

	w := tar.NewWriter(zip)

	for _, f := range c.all() {
		header := &tar.Header{
			Typeflag: tar.TypeReg,
			Name:     c.Metadata.Name + "/" + f.Name,
			Size:     int64(len(f.Data)),
			Mode:     0o644,
			ModTime:  time.Unix(0, 0),
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("chart %s: file %s: %w", c.Metadata.Name, f.Name, err)
		}

		if _, err := w.Write(f.Data); err != nil {
			return nil, fmt.Errorf("chart %s: file %s: %w", c.Metadata.Name, f.Name, err)
		}
	}

	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Metadata.Name, err)
	}

	return out.Bytes(), nil
}

// Digest returns the OCI digest of data, "sha256:<hex>".
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Read unpacks a chart archive. It limits the size and the number of files, and rejects links,
// devices, and paths outside the chart's folder.
func Read(r io.Reader) (*Chart, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("chart archive: not gzip: %w", err)
	}

	// The limit includes everything that the tar reader skips: a small archive may unpack to
	// terabytes of headers.
	bounded := &io.LimitedReader{R: zip, N: 2 * maxUnpacked}

	files, err := unpack(tar.NewReader(bounded))
	if bounded.N <= 0 {
		err = errTooLarge
	}

	if err != nil {
		return nil, fmt.Errorf("chart archive: %w", err)
	}

	i := slices.IndexFunc(files, func(f File) bool { return f.Name == MetadataFile })
	if i < 0 {
		return nil, fmt.Errorf("chart archive: no %s", MetadataFile)
	}

	if len(files[i].Data) > maxMetadata {
		return nil, fmt.Errorf("chart archive: %s is larger than %d MiB", MetadataFile, maxMetadata>>20)
	}

	if _, err := limit.Document(string(files[i].Data)); err != nil {
		return nil, fmt.Errorf("chart archive: %s %w", MetadataFile, err)
	}

	var metadata Metadata
	if err := yaml.Unmarshal(files[i].Data, &metadata); err != nil {
		return nil, fmt.Errorf("chart archive: %s: %w", MetadataFile, err)
	}

	if err := metadata.check(); err != nil {
		return nil, fmt.Errorf("chart archive: %s: %w", MetadataFile, err)
	}

	c := fromFiles(metadata, files)

	if err := limit.List(c.File(SchemaFile), limit.MaxDocumentValues); err != nil {
		return nil, fmt.Errorf("chart archive: %s %w", SchemaFile, err)
	}

	return c, checkCRDs(c.CRDs)
}

// checkCRDs returns an error if parsing the CRDs would take too much memory.
func checkCRDs(files []File) error {
	budget := limit.NewBudget(maxUnpacked, limit.MaxValues)

	for _, f := range files {
		if err := budget.Documents(string(f.Data)); err != nil {
			return fmt.Errorf("chart archive: %s %w", f.Name, err)
		}
	}

	return nil
}

// unpack reads the regular files below the archive's top-level folder.
func unpack(r *tar.Reader) ([]File, error) {
	var files []File

	remaining := int64(maxUnpacked)

	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}

		if err != nil {
			return nil, err
		}

		if header.Typeflag == tar.TypeDir {
			continue
		}

		name, err := entryName(header)
		if err != nil {
			return nil, err
		}

		remaining -= header.Size
		if remaining < 0 || len(files) == maxFiles {
			return nil, errTooLarge
		}

		data := make([]byte, header.Size)
		if _, err := io.ReadFull(r, data); err != nil {
			return nil, fmt.Errorf("file %s: %w", name, err)
		}

		files = append(files, File{Name: name, Data: data})
	}
}

// entryName returns the path of an entry relative to the chart's folder.
func entryName(header *tar.Header) (string, error) {
	if header.Typeflag != tar.TypeReg {
		return "", fmt.Errorf("entry %q is not a regular file", header.Name)
	}

	_, name, found := strings.Cut(header.Name, "/")
	if !found || name == "" || path.Clean("/"+header.Name) != "/"+header.Name {
		return "", fmt.Errorf("entry %q is outside the chart's folder", header.Name)
	}

	return name, nil
}

// all returns all files with Chart.yaml first, so that streaming readers can identify the chart at
// once.
func (c *Chart) all() []File {
	files := append(slices.Clone(c.Files), c.CRDs...)
	sortFiles(files)

	i := slices.IndexFunc(files, func(f File) bool { return f.Name == MetadataFile })
	if i > 0 {
		metadata := files[i]
		files = append([]File{metadata}, slices.Delete(files, i, i+1)...)
	}

	return files
}

func sortFiles(files []File) {
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
}
