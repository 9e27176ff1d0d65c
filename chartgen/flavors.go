package chartgen

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// flavor describes a cluster template or a ClusterClass in the README.
type flavor struct {
	File string
	// Flavor that selects a cluster template, or the name of a ClusterClass.
	Flavor string
	// IsDefault marks the cluster template without a flavor.
	IsDefault bool
	Variables []variable
	// Problem is why the variables are unknown; empty if they are known.
	Problem string
}

// newFlavor describes a file. That it cannot be read is no error: a provider can be installed without it.
func newFlavor(file bundle.File) flavor {
	f := flavor{File: file.Name, Flavor: bundle.ClusterClassName(file.Name)}

	if name, isTemplate := bundle.Flavor(file.Name); isTemplate {
		f.Flavor, f.IsDefault = name, name == ""
	}

	text, err := expr.Parse(string(file.Data))
	if err != nil {
		f.Problem = oneLine(err.Error())
		return f
	}

	objects := findObjects(string(file.Data))

	for _, v := range text.Variables() {
		f.Variables = append(f.Variables, variable{Variable: v, Uses: objects.at(v.Lines)})
	}

	return f
}

// objectKinds are the kinds of the objects in a text, by the lines on which they begin.
type objectKinds []struct {
	line int
	kind string
}

var (
	separator = regexp.MustCompile(`^---(\s|$)`)
	kindLine  = regexp.MustCompile(`^kind:\s*["']?(\w+)`)
)

// findObjects returns the kinds of the objects in a text. It does not parse the text, which is valid YAML
// only once its variables have values.
func findObjects(text string) objectKinds {
	kinds := objectKinds{{line: 1}}
	number := 0

	for line := range strings.Lines(text) {
		number++

		if separator.MatchString(line) {
			kinds = append(kinds, objectKinds{{line: number}}...)
		}

		if m := kindLine.FindStringSubmatch(line); m != nil {
			kinds[len(kinds)-1].kind = m[1]
		}
	}

	return kinds
}

// at returns the kinds of the objects that have the lines, each once, or the lines of those without a
// kind.
func (k objectKinds) at(numbers []int) []string {
	var uses []string

	for _, number := range numbers {
		use := fmt.Sprintf("line %d", number)

		for _, object := range slices.Backward(k) {
			if object.line <= number {
				if object.kind != "" {
					use = object.kind
				}

				break
			}
		}

		if !slices.Contains(uses, use) {
			uses = append(uses, use)
		}
	}

	return uses
}
