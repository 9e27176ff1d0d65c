// Package released_test keeps what the versions of Capstan have written: each later version must read it, and must
// write nothing that they cannot read. The last step before a release writes the folder of its version:
//
//	CAPSTAN_WRITE_RELEASED=v0.1.0 go test ./test/released
//
// After the release, nothing in the folder changes.
package released_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	. "github.com/onsi/gomega"
)

const (
	root = "../.."
	// testdata has a folder for each version.
	testdata = "testdata"
	// writeTo is the environment variable with the version whose folder is written, once, by the version itself.
	writeTo = "CAPSTAN_WRITE_RELEASED"
)

// The files of a version.
const (
	chartsFile        = "charts.yaml"
	configurationFile = "configuration.yaml"
	fieldsFile        = "fields.yaml"
	mirrorFile        = "mirror.tar"
	recordsFile       = "records.yaml"
	resourceFile      = "resource.yaml"
)

// readers check what this version reads in the files of a version.
var readers = map[string]func(*testing.T, map[string][]byte){
	chartsFile:        readCharts,
	configurationFile: readConfiguration,
	fieldsFile:        readFields,
	mirrorFile:        readMirror,
	recordsFile:       readRecords,
	resourceFile:      readResource,
}

// TestWritesForEarlierVersions checks that the last version can read what this one writes: every field, label,
// annotation, flag and file that is new since then is in the change log.
func TestWritesForEarlierVersions(t *testing.T) {
	g := NewWithT(t)
	written := write(t)

	if version := os.Getenv(writeTo); version != "" {
		for name, data := range written {
			g.Expect(os.MkdirAll(filepath.Join(testdata, version), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(testdata, version, name), data, 0o600)).To(Succeed())
		}
	}

	changes, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	g.Expect(err).NotTo(HaveOccurred())

	all := versions(t)
	last := all[len(all)-1]
	released := load(t, last)

	for name, data := range written {
		for _, added := range addedPaths(t, released[name], data) {
			if !strings.Contains(string(changes), "`"+added+"`") {
				t.Errorf("%s of %s has no %s: if that version can ignore it, name it in the section of the next version of "+
					"CHANGELOG.md, below Downgrades", name, last, added)
			}
		}
	}
}

// TestReadsEarlierVersions checks that this version reads what all versions have written.
func TestReadsEarlierVersions(t *testing.T) {
	for _, version := range versions(t) {
		for file, read := range readers {
			t.Run(version+"/"+file, func(t *testing.T) { read(t, load(t, version)) })
		}
	}
}

// TestWrittenIsRead checks that this version reads what it writes, and that each file is written and read.
func TestWrittenIsRead(t *testing.T) {
	written := write(t)
	NewWithT(t).Expect(slices.Sorted(maps.Keys(written))).To(Equal(slices.Sorted(maps.Keys(readers))))

	for file, read := range readers {
		t.Run(file, func(t *testing.T) { read(t, written) })
	}
}

// write returns the files that this version writes.
func write(t *testing.T) map[string][]byte {
	t.Helper()

	record, resource := writeRecord(t)

	return map[string][]byte{
		chartsFile:        writeCharts(t),
		configurationFile: writeConfiguration(t),
		fieldsFile:        writeFields(t),
		mirrorFile:        writeMirror(t),
		recordsFile:       record,
		resourceFile:      resource,
	}
}

// versions returns the versions with files, from the first to the last one.
func versions(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)

	entries, err := os.ReadDir(testdata)
	g.Expect(err).NotTo(HaveOccurred())

	var found []*semver.Version

	for _, entry := range entries {
		version, err := semver.NewVersion(entry.Name())
		g.Expect(err).NotTo(HaveOccurred(), entry.Name())

		found = append(found, version)
	}

	g.Expect(found).NotTo(BeEmpty())
	slices.SortFunc(found, (*semver.Version).Compare)

	names := make([]string, 0, len(found))
	for _, version := range found {
		names = append(names, version.Original())
	}

	return names
}

// load returns the files of a version.
func load(t *testing.T, version string) map[string][]byte {
	t.Helper()

	files := map[string][]byte{}

	for name := range readers {
		data, err := os.ReadFile(filepath.Join(testdata, version, name))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		files[name] = data
	}

	return files
}
