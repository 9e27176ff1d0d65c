// Package table prints a table of compatibility from what specs have shown. A spec names the row that it belongs to
// and, if it shows a documented difference, the line of docs/cluster-api-operator.md that describes it. All results
// come from Ginkgo's report of a run.
package table

import (
	"net/url"
	"strings"

	"github.com/onsi/ginkgo/v2"
)

// Label is the label of all specs that belong to a row, and of all specs of test/compat.
const Label = "compat"

// The prefixes of labels with a row and with a difference.
const (
	rowPrefix        = "row="
	differencePrefix = "differs="
)

// escape replaces the characters that Ginkgo does not allow in labels, and those that separate their parts.
var escape = strings.NewReplacer("%", "%25", "=", "%3D", ":", "%3A", "/", "%2F", ",", "%2C", "(", "%28", ")", "%29",
	"&", "%26", "|", "%7C", "!", "%21").Replace

// Row returns the labels of a spec that shows what a row says, in a section such as "Preflight checks". Several specs
// can belong to one row. If it shows documented differences, they are named by the first cell of their lines in
// docs/cluster-api-operator.md, without backticks.
func Row(section, text string, differences ...string) ginkgo.Labels {
	labels := make(ginkgo.Labels, 0, 2+len(differences))
	labels = append(labels, Label, rowPrefix+escape(section)+"="+escape(text))

	for _, subject := range differences {
		labels = append(labels, differencePrefix+escape(subject))
	}

	return labels
}

// parseRow returns the section and the text of a label that Row has made, and reports whether it is one.
func parseRow(label string) (section, text string, ok bool) {
	escaped, ok := strings.CutPrefix(label, rowPrefix)
	if !ok {
		return "", "", false
	}

	section, text, ok = strings.Cut(escaped, "=")

	return unescape(section), unescape(text), ok
}

// parseDifference returns the subject of a label that names a difference, and reports whether it is one.
func parseDifference(label string) (string, bool) {
	escaped, ok := strings.CutPrefix(label, differencePrefix)
	return unescape(escaped), ok
}

// unescape is the inverse of escape.
func unescape(escaped string) string {
	text, err := url.PathUnescape(escaped)
	if err != nil {
		return escaped // not one of our labels
	}

	return text
}
