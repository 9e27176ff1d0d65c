package source

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// gitRefsURL returns the address from which a server lists the references of a Git repository over HTTP, as
// `git ls-remote` does. One request lists all of them, on every Git server, and servers do not limit its rate
// as that of their APIs.
func gitRefsURL(repository string) string {
	return strings.TrimSuffix(repository, ".git") + ".git/info/refs?service=git-upload-pack"
}

const (
	// gitLengthDigits is the size of the length in front of each line, in hexadecimal digits. The length
	// includes them.
	gitLengthDigits = 4
	gitAnnouncement = "# service=git-upload-pack"
	gitTagPrefix    = "refs/tags/"
	// gitPeeledSuffix marks the commit that an annotated tag points to, besides the tag itself.
	gitPeeledSuffix = "^{}"
)

// parseGitTags returns the names of the tags in an answer to gitRefsURL, in the server's order. The answer has
// the format of versions 0 and 1 of Git's protocol, which servers use for clients that ask for no version.
func parseGitTags(answer []byte) ([]string, error) {
	var tags []string

	for number := 1; len(answer) > 0; number++ {
		line, rest, err := cutGitLine(answer)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}

		answer = rest

		if number == 1 && line != gitAnnouncement {
			return nil, errors.New("it does not begin with " + gitAnnouncement)
		}

		// The server's capabilities follow the first reference.
		reference, _, _ := strings.Cut(line, "\x00")
		_, name, _ := strings.Cut(reference, " ")

		if tag, ok := strings.CutPrefix(name, gitTagPrefix); ok && !strings.HasSuffix(tag, gitPeeledSuffix) {
			tags = append(tags, tag)
		}
	}

	return tags, nil
}

// cutGitLine returns the first line without its length and line break, and what follows it. The line is empty
// at the end of a section.
func cutGitLine(answer []byte) (line string, rest []byte, err error) {
	if len(answer) < gitLengthDigits {
		return "", nil, errors.New("it has no length")
	}

	length, err := strconv.ParseUint(string(answer[:gitLengthDigits]), 16, 16)
	if err != nil {
		return "", nil, errors.New("its length is not a number")
	}

	switch {
	case length == 0:
		return "", answer[gitLengthDigits:], nil
	case length < gitLengthDigits || int(length) > len(answer):
		return "", nil, fmt.Errorf("its length %d is wrong", length)
	}

	return string(bytes.TrimSuffix(answer[gitLengthDigits:length], []byte("\n"))), answer[length:], nil
}
