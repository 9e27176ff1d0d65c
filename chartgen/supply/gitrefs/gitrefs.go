// Package gitrefs reads the list of references that a server offers for a Git repository over HTTP, as
// `git ls-remote` does. One request lists all of them, on every Git server, and servers do not limit its
// rate as that of their APIs.
package gitrefs

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// URL returns the address that lists the references of a repository.
func URL(repository string) string {
	return strings.TrimSuffix(repository, ".git") + ".git/info/refs?service=git-upload-pack"
}

const (
	// lengthDigits is the size of the length in front of each line, in hexadecimal digits. The length
	// includes them.
	lengthDigits = 4
	announcement = "# service=git-upload-pack"
	tagPrefix    = "refs/tags/"
	// peeledSuffix marks the commit that an annotated tag points to, besides the tag itself.
	peeledSuffix = "^{}"
)

// Tags returns the names of the tags in an answer to URL, in the server's order. The answer has the format
// of versions 0 and 1 of Git's protocol, which servers use for clients that ask for no version.
func Tags(answer []byte) ([]string, error) {
	var tags []string

	for number := 1; len(answer) > 0; number++ {
		line, rest, err := cutLine(answer)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}

		answer = rest

		if number == 1 && line != announcement {
			return nil, errors.New("it does not begin with " + announcement)
		}

		// The server's capabilities follow the first reference.
		reference, _, _ := strings.Cut(line, "\x00")
		_, name, _ := strings.Cut(reference, " ")

		if tag, ok := strings.CutPrefix(name, tagPrefix); ok && !strings.HasSuffix(tag, peeledSuffix) {
			tags = append(tags, tag)
		}
	}

	return tags, nil
}

// cutLine returns the first line without its length and line break, and what follows it. The line is empty
// at the end of a section.
func cutLine(answer []byte) (line string, rest []byte, err error) {
	if len(answer) < lengthDigits {
		return "", nil, errors.New("it has no length")
	}

	length, err := strconv.ParseUint(string(answer[:lengthDigits]), 16, 16)
	if err != nil {
		return "", nil, errors.New("its length is not a number")
	}

	switch {
	case length == 0:
		return "", answer[lengthDigits:], nil
	case length < lengthDigits || int(length) > len(answer):
		return "", nil, fmt.Errorf("its length %d is wrong", length)
	}

	return string(bytes.TrimSuffix(answer[lengthDigits:length], []byte("\n"))), answer[length:], nil
}
