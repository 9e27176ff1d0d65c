package chartgen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// TemplateFile returns the name of the file in a chart with the template of an object, for example
// "templates/deployment-manager.yaml".
func TemplateFile(kind, name string) string {
	return chart.TemplatesDir + fileName(baseName(kind, name)) + ".yaml"
}

// baseName returns the name of an object's template.
func baseName(kind, name string) string { return kind + "-" + name }

// fileNames counts how often each file name has been requested.
type fileNames map[string]int

// unique converts a name to a file name that no other object of the chart has, by appending "-2",
// "-3", and so on.
func (n fileNames) unique(name string) string {
	name = fileName(name)

	n[name]++
	if count := n[name]; count > 1 {
		return n.unique(fmt.Sprintf("%s-%d", name, count))
	}

	return name
}

var notInFileName = regexp.MustCompile(`[^a-z0-9.-]+`)

// fileName converts a name to a file name without extension. Objects may have names of 253 characters,
// which is too long for a file once the kind precedes it: a digest replaces the end of a long name.
func fileName(name string) string {
	const (
		maxLength = 95 // with ".yaml", what any tar archive can hold
		digits    = 12
	)

	name = notInFileName.ReplaceAllString(strings.ToLower(name), "-")
	if len(name) <= maxLength {
		return name
	}

	sum := sha256.Sum256([]byte(name))

	return name[:maxLength-digits-1] + "-" + hex.EncodeToString(sum[:])[:digits]
}
