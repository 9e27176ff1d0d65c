// Package limit rejects YAML that would take too much memory or time to parse, before it is parsed.
// A parser needs some hundred bytes for each value, so a few bytes of YAML become a hundred times as
// many in memory: a list of numbers, or an alias of a long text.
package limit

import (
	"fmt"
	"strings"
)

// Limits of untrusted YAML. The largest real components have 3.2 MB in total with 37,000 values, and
// 1.7 MB in one document with 16,000 values.
const (
	// MaxText is the maximum size of a file or manifest in bytes.
	MaxText = 16 << 20
	// MaxDocument is the maximum size of one document in bytes. API servers accept no object that is
	// larger than 3 MiB, without the indentation of YAML.
	MaxDocument = 4 << 20
	// MaxDocuments is the maximum number of documents of a file or manifest.
	MaxDocuments = 2000
	// MaxValues is the maximum number of scalars, lists, and maps of a file or manifest.
	MaxValues = 300000
	// MaxDocumentValues is the maximum number of scalars, lists, and maps of one document.
	MaxDocumentValues = 100000
	// MaxDepth is the maximum depth of lists and maps in each other. Indentation makes the YAML of a
	// deep object far larger than the object.
	MaxDepth = 100
	// maxExpanded is the maximum size of a document whose aliases are replaced by what they refer to,
	// in bytes, where each value counts as valueSize in addition to its text.
	maxExpanded = 8 << 20
)

// Error reports that YAML exceeds a limit.
type Error struct {
	// Reason describes the limit, for example "has more than 100000 values".
	Reason string
}

func (e *Error) Error() string { return e.Reason }

func exceeded(format string, args ...any) error { return &Error{Reason: fmt.Sprintf(format, args...)} }

// Cost is the work that parsing a YAML text takes.
type Cost struct {
	// Size is in bytes, with aliases replaced by what they refer to.
	Size int
	// Values is an upper bound for the number of scalars, lists, and maps.
	Values int
}

// Budget limits the total cost of several documents. Checking a document takes its cost from the budget.
type Budget struct{ max, taken Cost }

// NewBudget returns a budget of so many bytes and values.
func NewBudget(size, values int) *Budget { return &Budget{max: Cost{Size: size, Values: values}} }

// NewFile returns the budget of a file or manifest.
func NewFile() *Budget { return NewBudget(MaxText, MaxValues) }

// Take takes a part of the budget. The error is an *Error: so much is not left.
func (b *Budget) Take(cost Cost) error {
	b.taken.Size += cost.Size
	b.taken.Values += cost.Values

	switch {
	case b.taken.Size > b.max.Size:
		return exceeded("brings the total to more than %d MiB", b.max.Size>>20)
	case b.taken.Values > b.max.Values:
		return exceeded("brings the total to more than %d values", b.max.Values)
	}

	return nil
}

// Document checks one document and takes its cost. The error is an *Error if a limit is exceeded.
func (b *Budget) Document(text string) error {
	cost, err := Document(text)
	if err != nil {
		return err
	}

	return b.Take(cost)
}

// Documents checks a file or manifest with any number of documents and takes their cost. The error is an *Error if a
// limit is exceeded.
func (b *Budget) Documents(text string) error {
	if len(text) > MaxText {
		return exceeded("is larger than %d MiB", MaxText>>20)
	}

	for i := range MaxDocuments {
		document, rest, more := cutDocument(text)

		if err := b.Document(document); err != nil {
			return exceeded("has a document, number %d, that %v", i+1, err)
		}

		if !more {
			return nil
		}

		text = rest
	}

	return exceeded("has more than %d documents", MaxDocuments)
}

// Document checks one document and returns its cost. The error is an *Error if a limit is exceeded.
func Document(text string) (Cost, error) {
	if len(text) > MaxDocument {
		return Cost{}, exceeded("is larger than %d MiB", MaxDocument>>20)
	}

	found := scan(text)

	switch {
	case found.utf16:
		return Cost{}, exceeded("is UTF-16; convert it to UTF-8")
	case found.values > MaxDocumentValues:
		return Cost{}, exceeded("has more than %d values", MaxDocumentValues)
	}

	cost := Cost{Size: len(text), Values: found.values}
	if !found.anchors || !found.aliases {
		return cost, nil
	}

	expanded, err := sizeWithAliases(text)
	cost.Size = max(cost.Size, expanded)

	return cost, err
}

// Documents checks a file or manifest with any number of documents. The error is an *Error if a limit is exceeded.
func Documents(text string) error { return NewFile().Documents(text) }

// List checks the JSON of a list, such as a server's list of releases. Each element becomes a
// structure, however small it is in JSON. The error is an *Error.
func List(json []byte, maxValues int) error {
	if scan(string(json)).values > maxValues {
		return exceeded("has more than %d values", maxValues)
	}

	return nil
}

// cutDocument cuts text at the first line that separates documents for any parser.
func cutDocument(text string) (document, rest string, more bool) {
	const separator = "\n---"

	for from := 0; ; {
		at := strings.Index(text[from:], separator)
		if at < 0 {
			return text, "", false
		}

		document, rest = text[:from+at], text[from+at+len(separator):]
		if rest == "" || isSpace(rest[0]) && rest[0] < 0x80 {
			return document, rest, true
		}

		from += at + len(separator)
	}
}

// Depth checks the depth of a decoded document. The error is an *Error.
func Depth(value any) error {
	if deeper(value, MaxDepth) {
		return exceeded("has more than %d levels of lists and maps", MaxDepth)
	}

	return nil
}

// Written returns about how many bytes a decoded document takes as YAML, which is at most twice as much: each level
// indents the lines of all that is in it.
func Written(value any) int { return written(value, 0) }

func written(value any, indent int) int {
	const perLevel = 2

	switch value := value.(type) {
	case map[string]any:
		size := 0
		for key, child := range value {
			size += indent + len(key) + written(child, indent+perLevel)
		}

		return size
	case []any:
		size := 0
		for _, child := range value {
			size += indent + written(child, indent+perLevel)
		}

		return size
	case string:
		return len(value) + strings.Count(value, "\n")*indent
	default:
		return len("false")
	}
}

// deeper reports whether a value has more levels than the given number.
func deeper(value any, levels int) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			if levels == 0 || deeper(child, levels-1) {
				return true
			}
		}
	case []any:
		for _, child := range value {
			if levels == 0 || deeper(child, levels-1) {
				return true
			}
		}
	}

	return false
}

// scanned is what a text may contain at most, as far as its characters show without parsing it.
type scanned struct {
	values           int
	anchors, aliases bool
	utf16            bool
}

// scan counts the indicators that begin a value. It counts those in text and comments too, so it
// finds more values than there are, but never fewer than a third: "- " begins an item, ": " separates
// a key from its value, and each key or item of a map or list in braces or brackets follows "{", "["
// or ",".
func scan(text string) scanned {
	s := scanned{
		values: 1,
		utf16:  strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff"),
	}

	for i := range len(text) {
		switch text[i] {
		case ',', '[', '{':
			s.values++
		case '-', ':', '?':
			if i+1 == len(text) || isSpace(text[i+1]) {
				s.values++
			}
		case '&':
			s.anchors = s.anchors || isToken(text, i)
		case '*':
			s.aliases = s.aliases || isToken(text, i)
		}
	}

	return s
}

// isSpace reports whether a byte is white space, or the first one of a line break outside of ASCII.
func isSpace(c byte) bool { return c <= ' ' || c == 0xc2 || c == 0xe2 }

// isToken reports whether the name of an anchor may follow at an offset.
func isToken(text string, at int) bool {
	begins := at == 0 || text[at-1] <= ' ' || text[at-1] >= 0x80 || strings.IndexByte("[{,:?-", text[at-1]) >= 0
	if !begins || at+1 == len(text) {
		return false
	}

	c := text[at+1]

	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || c == '-' || c >= 0x80
}
