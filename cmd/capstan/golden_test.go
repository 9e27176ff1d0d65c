package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// golden compares what was printed with a file in testdata; with UPDATE_GOLDEN set, it writes the
// file instead.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	g := NewWithT(t)
	file := filepath.Join("testdata", name)

	if os.Getenv("UPDATE_GOLDEN") != "" {
		g.Expect(os.MkdirAll("testdata", 0o755)).To(Succeed())
		g.Expect(os.WriteFile(file, got, 0o600)).To(Succeed())
	}

	want, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).To(Equal(string(want)))
}

// drawn is what a function prints on a screen.
func drawn(s *screen, draw func(*screen)) []byte {
	var out bytes.Buffer

	s.Writer = &out
	draw(s)

	return out.Bytes()
}
