package variables

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A mark replaces the value of a variable in a template. It is a valid name, label value and base64 text.
const (
	markPrefix = "capstanmark"
	markSuffix = "end"
)

var marks = regexp.MustCompile(markPrefix + `(\d+)` + markSuffix)

// mark returns the mark of the variable with an index.
func mark(index int) string { return fmt.Sprintf("%s%d%s", markPrefix, index, markSuffix) }

// wholeMark returns the index of the variable that a text consists of.
func wholeMark(text string) (index int, whole bool) {
	found := marks.FindStringSubmatch(text)
	if found == nil || found[0] != text {
		return 0, false
	}

	return indexOf(found[1]), true
}

// hasMark reports whether a value of a template contains a mark.
func hasMark(value any) bool { return len(marksIn(value)) > 0 }

// marksIn returns the indexes of the variables in a value of a template. Keys of maps do not count.
func marksIn(value any) []int {
	var found []int

	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			found = append(found, marksIn(field)...)
		}
	case []any:
		for _, item := range value {
			found = append(found, marksIn(item)...)
		}
	case string:
		if !strings.Contains(value, markPrefix) {
			return nil
		}

		for _, match := range marks.FindAllStringSubmatch(value, -1) {
			found = append(found, indexOf(match[1]))
		}
	}

	return found
}

func indexOf(digits string) int {
	index, _ := strconv.Atoi(digits) // digits only, and few

	return index
}

// pattern is a text of a template with marks.
type pattern struct {
	indexes []int // of the variables, in order
	// short and long match the text, with the shortest and the longest values for the first variables.
	short, long *regexp.Regexp
}

func newPattern(marked string) pattern {
	p := pattern{indexes: marksIn(marked)}

	literals := marks.Split(marked, -1)
	for i := range literals {
		literals[i] = regexp.QuoteMeta(literals[i])
	}

	p.short = regexp.MustCompile(`(?s)^` + strings.Join(literals, "(.*?)") + `$`)
	p.long = regexp.MustCompile(`(?s)^` + strings.Join(literals, "(.*)") + `$`)

	return p
}

func (p pattern) matches(text string) bool { return p.short.MatchString(text) }

// values returns the values of variables that turn the template into the text, by index. If there are none,
// or more than one possibility, it returns why.
func (p pattern) values(text string) (values map[int]string, problem string) {
	short := p.short.FindStringSubmatch(text)
	if short == nil {
		return nil, "differs from the template in more than the variable"
	}

	if !slices.Equal(short, p.long.FindStringSubmatch(text)) {
		return nil, "does not show where the value ends"
	}

	values = map[int]string{}

	for i, index := range p.indexes {
		value := short[i+1]
		if before, again := values[index]; again && before != value {
			return nil, "shows different values"
		}

		values[index] = value
	}

	return values, ""
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
