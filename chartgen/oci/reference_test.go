package oci

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestParse(t *testing.T) {
	d := "sha256:" + strings.Repeat("a", 64)
	for in, want := range map[string]string{
		"oci://example.com/a/b":            "oci://example.com/a/b",
		"example.com/a/b:v1":               "oci://example.com/a/b:v1",
		"http://localhost:5000/a:v1":       "http://localhost:5000/a:v1",
		"example.com:5000/a:v1@" + d:       "oci://example.com:5000/a:v1@" + d,
		"oci://example.com/a@" + d:         "oci://example.com/a@" + d,
		"oci://example.com/a/":             "oci://example.com/a",
		"example.com":                      "",
		"https://example.com/a":            "",
		"oci://example.com/A":              "",
		"oci://example.com/a:v1+x":         "",
		"oci://example.com/a@sha256:12":    "",
		"oci://user:pw@example.com/a":      "",
		"oci://example.com/../etc/passwd":  "",
		"oci://example.com/a b":            "",
		"oci://example.com/a?x=y":          "",
		"oci://exam\nple.com/a":            "",
		"oci://example.com/a:v1:v2":        "",
		"oci://example.com/a#frag":         "",
		"oci://[::1]:5000/a:v1":            "oci://[::1]:5000/a:v1",
		"oci://example.com/a:1.0.0_build5": "oci://example.com/a:1.0.0_build5",
	} {
		t.Run(in, func(t *testing.T) {
			g := NewWithT(t)

			ref, err := Parse(in)
			if want == "" {
				g.Expect(err).To(HaveOccurred())
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ref.String()).To(Equal(want))
			g.Expect(Parse(ref.String())).To(Equal(ref))
		})
	}
}

func TestParseImage(t *testing.T) {
	for in, want := range map[string]string{
		"nginx":                        "docker.io/library/nginx:latest",
		"org/once:v1":                  "docker.io/org/once:v1",
		"registry.k8s.io/a/b:v1":       "registry.k8s.io/a/b:v1",
		"localhost:5000/a@" + anyImage: "localhost:5000/a@" + anyImage,
	} {
		ref, err := ParseImage(in)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(ref.Name()).To(Equal(want))
	}

	_, err := ParseImage("a//b")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("not an image reference")))
}

const anyImage = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
