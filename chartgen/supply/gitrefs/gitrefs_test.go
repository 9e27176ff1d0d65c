package gitrefs

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const id = "95d09f2b10159347eece71399a7e2e907ea3df4f"

// encode returns lines with their lengths; an empty one ends a section.
func encode(lines ...string) []byte {
	var out strings.Builder

	for _, line := range lines {
		if line == "" {
			out.WriteString("0000")
			continue
		}

		fmt.Fprintf(&out, "%04x%s", len(line)+lengthDigits, line)
	}

	return []byte(out.String())
}

func TestTags(t *testing.T) {
	for name, c := range map[string]struct {
		answer []byte
		tags   []string
	}{
		"branches, pull requests, plain and annotated tags": {
			encode(announcement+"\n", "",
				id+" HEAD\x00multi_ack symref=HEAD:refs/heads/main agent=git/2.43\n",
				id+" refs/heads/main\n",
				id+" refs/pull/1/head\n",
				id+" refs/tags/api/v1.0.0\n",
				id+" refs/tags/v1.0.0\n",
				id+" refs/tags/v1.1.0\n",
				id+" refs/tags/v1.1.0^{}\n",
				""),
			[]string{"api/v1.0.0", "v1.0.0", "v1.1.0"},
		},
		"a tag as the first reference": {
			encode(announcement+"\n", "", id+" refs/tags/v1.0.0\x00agent=git\n", ""),
			[]string{"v1.0.0"},
		},
		"version 1 of the protocol": {
			encode(announcement+"\n", "", "version 1\n", id+" refs/tags/v1.0.0\x00agent=git", ""),
			[]string{"v1.0.0"},
		},
		"an empty repository": {
			encode(announcement+"\n", "", strings.Repeat("0", 40)+" capabilities^{}\x00agent=git\n", ""), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Tags(c.answer)).To(Equal(c.tags))
		})
	}
}

func TestTagsOfOtherAnswers(t *testing.T) {
	for answer, message := range map[string]string{
		"<!DOCTYPE html>":                   "line 1: its length is not a number",
		"0000":                              "it does not begin with # service=git-upload-pack",
		"001e# service=git-receive-pack":    "it does not begin with # service=git-upload-pack",
		"001e# service=git-upload-pac":      "line 1: its length 30 is wrong",
		"001d# service=git-upload-pack00":   "line 2: it has no length",
		"001d# service=git-upload-pack0003": "line 2: its length 3 is wrong",
		"001d# service=git-upload-packffff": "line 2: its length 65535 is wrong",
	} {
		_, err := Tags([]byte(answer))
		NewWithT(t).Expect(err).To(MatchError(message), answer)
	}
}

// FuzzTags checks that no answer makes the parser panic or return what is not there.
func FuzzTags(f *testing.F) {
	f.Add(encode(announcement, "", id+" refs/tags/v1.0.0\x00agent=git", ""))
	f.Fuzz(func(t *testing.T, answer []byte) {
		tags, err := Tags(answer)
		for _, tag := range tags {
			NewWithT(t).Expect(string(answer)).To(ContainSubstring(tagPrefix + tag))
		}

		NewWithT(t).Expect(err != nil && tags != nil).To(BeFalse())
	})
}

func TestURL(t *testing.T) {
	for _, repository := range []string{"https://github.com/o/r", "https://github.com/o/r.git"} {
		NewWithT(t).Expect(URL(repository)).
			To(Equal("https://github.com/o/r.git/info/refs?service=git-upload-pack"))
	}
}
