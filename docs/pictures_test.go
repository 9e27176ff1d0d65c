package docs_test

import (
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var (
	// shownPicture matches a picture of the status page in a document, and takenPicture where the scenario takes one.
	shownPicture = regexp.MustCompile(`images/(ui-[a-z-]+)\.png`)
	takenPicture = regexp.MustCompile(`\.picture\("(ui-[a-z-]+)"( \+ scheme)?\)`)
)

// maxPictures is the size of all pictures of the status page in bytes.
const maxPictures = 600_000

// TestPictures checks that the documents show the pictures that make screenshots takes, and that they are small.
func TestPictures(t *testing.T) {
	g := NewWithT(t)

	var shown, taken, existing []string

	for _, document := range []string{"ui.md", "../README.md"} {
		data, err := os.ReadFile(document)
		g.Expect(err).NotTo(HaveOccurred())

		for _, match := range shownPicture.FindAllStringSubmatch(string(data), -1) {
			shown = append(shown, match[1])
		}

		g.Expect(string(data)).NotTo(Or(ContainSubstring("![]"), ContainSubstring(`alt=""`)), "each has a text")
	}

	scenario, err := os.ReadFile("../test/e2e/ui_test.go")
	g.Expect(err).NotTo(HaveOccurred())

	for _, match := range takenPicture.FindAllStringSubmatch(string(scenario), -1) {
		if match[2] == "" {
			taken = append(taken, match[1])
			continue
		}

		taken = append(taken, match[1]+"light", match[1]+"dark")
	}

	files, err := filepath.Glob("images/ui-*.png")
	g.Expect(err).NotTo(HaveOccurred())

	total := int64(0)

	for _, file := range files {
		existing = append(existing, strings.TrimSuffix(filepath.Base(file), ".png"))

		f, err := os.Open(file)
		g.Expect(err).NotTo(HaveOccurred())

		picture, err := png.DecodeConfig(f)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(picture.Width).To(Equal(1280), file)

		info, err := f.Stat()
		g.Expect(err).NotTo(HaveOccurred())

		total += info.Size()

		g.Expect(f.Close()).To(Succeed())
	}

	slices.Sort(shown)
	g.Expect(taken).To(ConsistOf(slices.Compact(shown)))
	g.Expect(existing).To(ConsistOf(taken))
	g.Expect(total).To(BeNumerically("<", maxPictures))
}
