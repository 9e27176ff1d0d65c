package lint

import (
	_ "embed"
	"strings"
)

// pluralSuffixes has a line for each ending of a singular and that of its plural. The first one that matches counts.
//
// These are the rules of github.com/gobuffalo/flect, with which Cluster API computes the names of CRDs. That package
// computes tables when a program starts, even one that needs no plural: a tenth of the time that the command line
// needs to start.
//
//go:embed plurals.txt
var pluralSuffixes string

// pluralWords are rules for whole words.
var pluralWords = map[string]string{
	"alias": "aliases",
	"axis":  "axes",
	"dice":  "dice",
	"die":   "dice",
	"lice":  "lice",
	"louse": "lice",
	"ox":    "oxen",
	"oxen":  "oxen",
}

// resourceName returns the name that Cluster API expects the resource of a kind to have.
func resourceName(kind string) string {
	word := strings.ToLower(kind)
	if p, exact := pluralWords[word]; exact {
		return p
	}

	for line := range strings.Lines(pluralSuffixes) {
		one, many, _ := strings.Cut(strings.TrimSpace(line), " ")

		if strings.HasSuffix(word, many) {
			return word
		}

		if stem, found := strings.CutSuffix(word, one); found {
			return stem + many
		}
	}

	if strings.HasSuffix(word, "s") {
		return word
	}

	return word + "s"
}
