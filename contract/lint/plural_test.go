package lint

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/util/contract"
)

// TestPlural compares names of resources with those that Cluster API computes, for all endings with three letters
// and all words that have a rule.
func TestPlural(t *testing.T) {
	g := NewWithT(t)

	var kinds []string

	for a := 'a'; a <= 'z'; a++ {
		for b := 'a'; b <= 'z'; b++ {
			for c := 'a'; c <= 'z'; c++ {
				kinds = append(kinds, "Example"+string([]rune{a, b, c}))
			}
		}
	}

	for _, word := range strings.Fields(pluralSuffixes) {
		kinds = append(kinds, word, "AWS"+word, "Example2"+word)
	}

	for one, many := range pluralWords {
		kinds = append(kinds, one, many, "Example"+one)
	}

	for _, kind := range kinds {
		g.Expect(resourceName(kind)+".example.com").To(Equal(contract.CalculateCRDName("example.com", kind)), kind)
	}
}
