package table

import (
	"errors"
	"strings"
)

// Difference is a documented difference.
type Difference struct {
	// Subject is the first cell of its line, without backticks.
	Subject string
	// Reason is the last cell of its line.
	Reason string
}

// The section of docs/cluster-api-operator.md with the tables of differences from cluster-api-operator.
const (
	heading     = "\n## Differences\n"
	nextHeading = "\n## "
)

// ParseDifferences returns the differences from cluster-api-operator in docs/cluster-api-operator.md.
func ParseDifferences(page string) ([]Difference, error) {
	_, section, found := strings.Cut(page, heading)
	section, _, _ = strings.Cut(section, nextHeading)

	var differences []Difference

	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		subject := strings.TrimSpace(strings.ReplaceAll(cells[0], "`", ""))

		switch {
		case !strings.HasPrefix(line, "|"), strings.HasPrefix(line, "|---"):
		case subject == "", subject == "field", strings.HasPrefix(line, "| |"): // a header
		case len(cells) < 2:
			return nil, errors.New("the line has one cell: " + line)
		default:
			differences = append(differences, Difference{subject, strings.TrimSpace(cells[len(cells)-1])})
		}
	}

	if !found || len(differences) == 0 {
		return nil, errors.New("there is no section with differences from cluster-api-operator")
	}

	return differences, nil
}
