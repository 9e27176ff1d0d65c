package source

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const gitCommit = "95d09f2b10159347eece71399a7e2e907ea3df4f"

// encodeGitLines returns lines with their lengths; an empty one ends a section.
func encodeGitLines(lines ...string) []byte {
	var out strings.Builder

	for _, line := range lines {
		if line == "" {
			out.WriteString("0000")
			continue
		}

		fmt.Fprintf(&out, "%04x%s", len(line)+gitLengthDigits, line)
	}

	return []byte(out.String())
}

func TestParseGitTags(t *testing.T) {
	for name, c := range map[string]struct {
		answer []byte
		tags   []string
	}{
		"branches, pull requests, plain and annotated tags": {
			encodeGitLines(gitAnnouncement+"\n", "",
				gitCommit+" HEAD\x00multi_ack symref=HEAD:refs/heads/main agent=git/2.43\n",
				gitCommit+" refs/heads/main\n",
				gitCommit+" refs/pull/1/head\n",
				gitCommit+" refs/tags/api/v1.0.0\n",
				gitCommit+" refs/tags/v1.0.0\n",
				gitCommit+" refs/tags/v1.1.0\n",
				gitCommit+" refs/tags/v1.1.0^{}\n",
				""),
			[]string{"api/v1.0.0", "v1.0.0", "v1.1.0"},
		},
		"a tag as the first reference": {
			encodeGitLines(gitAnnouncement+"\n", "", gitCommit+" refs/tags/v1.0.0\x00agent=git\n", ""),
			[]string{"v1.0.0"},
		},
		"version 1 of the protocol": {
			encodeGitLines(gitAnnouncement+"\n", "", "version 1\n", gitCommit+" refs/tags/v1.0.0\x00agent=git", ""),
			[]string{"v1.0.0"},
		},
		"an empty repository": {
			encodeGitLines(gitAnnouncement+"\n", "", strings.Repeat("0", 40)+" capabilities^{}\x00agent=git\n", ""), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(parseGitTags(c.answer)).To(Equal(c.tags))
		})
	}
}

func TestParseGitTagsOfOtherAnswers(t *testing.T) {
	for answer, message := range map[string]string{
		"<!DOCTYPE html>":                   "line 1: its length is not a number",
		"0000":                              "it does not begin with # service=git-upload-pack",
		"001e# service=git-receive-pack":    "it does not begin with # service=git-upload-pack",
		"001e# service=git-upload-pac":      "line 1: its length 30 is wrong",
		"001d# service=git-upload-pack00":   "line 2: it has no length",
		"001d# service=git-upload-pack0003": "line 2: its length 3 is wrong",
		"001d# service=git-upload-packffff": "line 2: its length 65535 is wrong",
	} {
		_, err := parseGitTags([]byte(answer))
		NewWithT(t).Expect(err).To(MatchError(message), answer)
	}
}

// FuzzParseGitTags checks that no answer makes the parser panic or return what is not there.
func FuzzParseGitTags(f *testing.F) {
	f.Add(encodeGitLines(gitAnnouncement, "", gitCommit+" refs/tags/v1.0.0\x00agent=git", ""))
	f.Fuzz(func(t *testing.T, answer []byte) {
		tags, err := parseGitTags(answer)
		for _, tag := range tags {
			NewWithT(t).Expect(string(answer)).To(ContainSubstring(gitTagPrefix + tag))
		}

		NewWithT(t).Expect(err != nil && tags != nil).To(BeFalse())
	})
}

func TestGitRefsURL(t *testing.T) {
	for _, repository := range []string{"https://github.com/o/r", "https://github.com/o/r.git"} {
		NewWithT(t).Expect(gitRefsURL(repository)).
			To(Equal("https://github.com/o/r.git/info/refs?service=git-upload-pack"))
	}
}
