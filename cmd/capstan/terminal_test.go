package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestControlCharacters checks that what a publisher writes cannot control the terminal of a user who looks at it.
func TestControlCharacters(t *testing.T) {
	g := NewWithT(t)
	folder := filepath.Join(t.TempDir(), "cluster-api")
	g.Expect(os.CopyFS(folder, os.DirFS(filepath.Join(sampleProviders, "cluster-api")))).To(Succeed())

	file := filepath.Join(folder, "v1.0.0", "core-components.yaml")
	data, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())

	hostile := string(data) + `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "d\e[2J\e]0;owned\ax\u009b8m", namespace: capi-system}
spec: {template: {spec: {containers: [{name: "c\e[2J"}]}}}
---
apiVersion: v1
kind: Service
metadata: {name: "d\e[2J\e]0;owned\ax\u009b8m", namespace: "n\e[2J"}
`
	g.Expect(os.WriteFile(file, []byte(hostile), 0o600)).To(Succeed())

	quoted := 0

	for _, args := range [][]string{
		{"lint", folder}, {"lint", folder, "--color", "always"},
		{"chart", "build", folder, "-d", t.TempDir()}, {"chart", "build", folder + "/\x1b[2J"},
	} {
		_, stdout, stderr := runMain(t, args...)
		g.Expect(stdout+stderr).NotTo(MatchRegexp("[\x07\u009b]|\x1b(\\[2J|\\])"), "%q", args)

		if strings.Contains(stdout+stderr, "[2J") {
			quoted++
		}
	}

	g.Expect(quoted).To(BeNumerically(">=", 3), "names that were printed")
}
