package view

import (
	"regexp"
	"strings"
)

// shellSafe matches words that need no quotes in a shell.
var shellSafe = regexp.MustCompile(`^[\pL\pN_./:=@%+,-]+$`)

// Quote returns a word of a command that users copy into a shell, in quotes if it needs them.
func Quote(word string) string {
	if shellSafe.MatchString(word) {
		return word
	}

	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
