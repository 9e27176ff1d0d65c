package bundle

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// readNodes returns the nodes of a document with their places. Tests count what is read.
var readNodes = func(text string) (*yamlv3.Node, error) {
	var root yamlv3.Node

	return &root, yamlv3.Unmarshal([]byte(text), &root)
}

// locator finds the scalars of a document that contain expressions. It reads the document with letters in place of the
// expressions, which has all nodes in the same places.
type locator struct {
	text    *expr.Text
	masked  string
	scalars []place
	numbers map[*yamlv3.Node]int // of maps with expressions in keys
	hasPods bool                 // the document is a workload

	// The position up to which the text was counted; lines and columns start at 1.
	offset, line, column int
}

// place is a scalar in a document.
type place struct {
	node   *yamlv3.Node
	parent *yamlv3.Node
	role   role
	column int    // of the key, starting at 0, if it is a key or its value
	field  string // the last key of its path, except of a key

	start, content, end int // in bytes; the content is after the anchor, the tag, and the header of a block
}

// role is what a scalar is to its parent.
type role int

const (
	isValue role = iota
	isItem
	isKey
)

// locate finds the scalars of the document that contain expressions. The error is a *valueError: an expression is
// neither in a scalar nor in a comment.
func (d *Document) locate() error {
	if !d.Text.HasExpressions() || d.root != nil {
		return nil
	}

	l := &locator{text: d.Text, numbers: map[*yamlv3.Node]int{}, hasPods: RunsPods(d.Object.Object), line: 1, column: 1}

	var masked []expr.Range

	l.masked, masked = d.Text.Masked()

	root, err := readNodes(l.masked)
	if err != nil {
		return noScalar(d.Text, d.Text)
	}

	l.collect(root, place{})

	if d.Scalars, err = l.find(masked); err != nil {
		return err
	}

	l.addKeys(d.Scalars)

	d.root = root

	return nil
}

// noScalar returns the error for a part of a text that is in no scalar.
func noScalar(part, text *expr.Text) error {
	if !part.HasExpressions() { // it is a dollar sign
		part = text
	}

	invalid := &valueError{}
	for _, v := range part.Variables() {
		invalid.Variables = append(invalid.Variables, v.Name)
	}

	return invalid
}

// collect collects the scalars of a node in the order of the document.
func (l *locator) collect(node *yamlv3.Node, at place) {
	at.node = node

	switch node.Kind {
	case yamlv3.DocumentNode:
		l.collect(node.Content[0], at)
	case yamlv3.SequenceNode:
		for _, item := range node.Content {
			l.collect(item, place{parent: node, role: isItem, field: at.field})
		}
	case yamlv3.MappingNode:
		for i := 0; i < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]

			l.collect(key, place{parent: node, role: isKey, column: key.Column - 1})
			l.collect(value, place{parent: node, role: isValue, column: key.Column - 1, field: key.Value})
		}
	case yamlv3.ScalarNode:
		if at.parent != nil {
			at.start = l.advance(node.Line, node.Column)
			l.scalars = append(l.scalars, at)
		}
	}
}

// advance returns the offset of a position, which is not before the last one.
func (l *locator) advance(line, column int) int {
	for l.offset < len(l.masked) && (l.line < line || l.line == line && l.column < column) {
		r, size := utf8.DecodeRuneInString(l.masked[l.offset:])
		l.offset += size

		switch r {
		case '\r', '\n', '\u0085', '\u2028', '\u2029':
			if r == '\r' && strings.HasPrefix(l.masked[l.offset:], "\n") {
				l.offset++
			}

			l.line, l.column = l.line+1, 1
		default:
			l.column++
		}
	}

	return l.offset
}

// find returns the scalars and comments that contain the given parts of the text.
func (l *locator) find(masked []expr.Range) ([]Scalar, error) {
	var found []Scalar

	next := 0 // the first scalar after the part

	for i := 0; i < len(masked); {
		for next < len(l.scalars) && l.scalars[next].start <= masked[i].Start {
			next++
		}

		s, isFound := l.at(next-1, masked[i])
		if !isFound {
			return nil, noScalar(l.text.Part(masked[i].Start, masked[i].End), l.text)
		}

		found = append(found, s)

		for i < len(masked) && masked[i].End <= s.start+len(s.Written) {
			i++
		}
	}

	return found, nil
}

// at returns the scalar with an index if it contains a part of the text, or else the comment that does.
func (l *locator) at(index int, part expr.Range) (s Scalar, isFound bool) {
	before := 0

	if index >= 0 {
		p := &l.scalars[index]
		if p.end == 0 {
			p.content, p.end = p.extent(l.masked)
		}

		if part.End <= p.end {
			return l.scalar(p)
		}

		before = p.end
	}

	start := strings.LastIndexByte(l.masked[:part.Start], '#')
	if start < before || strings.Contains(l.masked[start:part.Start], "\n") {
		return Scalar{}, false
	}

	end := len(l.masked)
	if i := strings.IndexByte(l.masked[part.End:], '\n'); i >= 0 {
		end = part.End + i
	}

	s = l.newScalar(start, end, inComment)
	s.Constant = comment

	return s, true
}

// newScalar returns the scalar from start to end.
func (l *locator) newScalar(start, end int, frame string) Scalar {
	text := l.text.Part(start, end)

	return Scalar{Written: text.String(), Frame: frame, Expressions: text.Expressions(), start: start, text: text}
}

// scalar returns the scalar in a place.
func (l *locator) scalar(p *place) (s Scalar, isFound bool) {
	s = l.newScalar(p.start, p.end, p.frame(l.masked))

	if strings.Contains(s.Written[:p.content-p.start], "&"+p.node.Anchor) { // and not an expression
		s.Anchor = p.node.Anchor
	}

	switch {
	case p.role == isKey:
		if l.numbers[p.parent] == 0 {
			l.numbers[p.parent] = len(l.numbers) + 1
		}

		s.Map = l.numbers[p.parent]
	case l.hasPods && slices.Contains([]string{"command", "args", "value"}, p.field):
		s.Field = p.field
	}

	// The place is certain if the text alone has the same value.
	node, err := s.read(l.masked[p.start:p.end], limit.NewFile())
	if err != nil || node == "" {
		return Scalar{}, false
	}

	if l.text.Part(p.content, p.end).IsPlain() {
		s.Constant = node
	} else if node != toText(p.node.Value) {
		return Scalar{}, false
	}

	// Marked shows this. Each key has another one.
	p.node.SetString(fmt.Sprint(markPrefix, p.start))

	return s, true
}

// addKeys adds the other keys of a map to its first key with expressions.
func (l *locator) addKeys(scalars []Scalar) {
	others := map[int][]string{}

	for node, number := range l.numbers {
		for i := 0; i < len(node.Content); i += 2 {
			if key := node.Content[i]; !IsMarked(key.Value) {
				others[number] = append(others[number], keyOf(key))
			}
		}
	}

	for i := range scalars {
		s := &scalars[i]
		s.Keys = others[s.Map]
		delete(others, s.Map)
	}
}

// keyOf returns the JSON of a key.
func keyOf(node *yamlv3.Node) string {
	if node.Alias != nil {
		node = node.Alias
	}

	if node.Style == 0 { // plain text may be a number
		decoded, _ := decode(node.Value+":", yaml.YAMLToJSON)
		for key := range decoded {
			return toText(key)
		}
	}

	return toText(node.Value)
}

// frame returns the frame of a scalar.
func (p *place) frame(masked string) string {
	if p.parent.Style&yamlv3.FlowStyle != 0 {
		lineStart := "" // where the end of a document may be
		if strings.HasSuffix(masked[:p.start], "\n") {
			lineStart = "\n"
		}

		return strings.Replace(
			map[role]string{isValue: flowValue, isItem: flowItem, isKey: flowKey}[p.role], "%[2]s", lineStart+"%[2]s", 1)
	}

	lineEnd := "\n"
	if strings.HasSuffix(masked[p.start:p.end], "\n") {
		lineEnd = ""
	}

	format := map[role]string{isValue: blockValue, isItem: blockItem, isKey: blockKey}[p.role]

	// A value that becomes a map must be below its key.
	line := masked[strings.LastIndexByte(masked[:p.start], '\n')+1 : p.start]
	if p.role == isValue && strings.Trim(line, " ") == "" {
		format = strings.Replace(blockValueBelow, "§", line, 1)
	}

	return strings.ReplaceAll(fmt.Sprintf(format, lineEnd), "@", strings.Repeat(" ", p.indentation(masked)))
}

// indentation returns the column of the key, or of the hyphen before an item.
func (p *place) indentation(masked string) int {
	if p.role != isItem {
		return p.column
	}

	before := strings.TrimRight(masked[:p.start], " \t\r\n")
	if !strings.HasSuffix(before, "-") { // a comment follows the hyphen
		return p.parent.Column - 1
	}

	return utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) - 1
}

// extent returns where the content of a scalar begins and ends.
func (p *place) extent(masked string) (content, end int) {
	content, end = p.start, p.start

	for content < len(masked) && (masked[content] == '&' || masked[content] == '!') {
		end = content + indexOf(masked[content:], func(r rune) bool {
			return unicode.IsSpace(r) || strings.ContainsRune(",[]{}", r)
		})
		content = end + indexOf(masked[end:], func(r rune) bool { return !unicode.IsSpace(r) })
	}

	switch p.node.Style &^ yamlv3.TaggedStyle {
	case yamlv3.DoubleQuotedStyle, yamlv3.SingleQuotedStyle:
		return content, quotedEnd(masked, content)
	case yamlv3.LiteralStyle, yamlv3.FoldedStyle:
		return blockExtent(masked, content, p.indentation(masked))
	}

	// The text is the value, but for white space.
	at := content

	for _, r := range p.node.Value {
		if unicode.IsSpace(r) {
			continue
		}

		at += indexOf(masked[at:], func(r rune) bool { return !unicode.IsSpace(r) })
		if !strings.HasPrefix(masked[at:], string(r)) {
			break
		}

		at += utf8.RuneLen(r)
		end = at
	}

	return content, end
}

// indexOf returns the index of the first character of a kind, or the length of the text.
func indexOf(text string, isKind func(rune) bool) int {
	if i := strings.IndexFunc(text, isKind); i >= 0 {
		return i
	}

	return len(text)
}

// quotedEnd returns the end of a text in quotes, which begins at an offset.
func quotedEnd(masked string, start int) int {
	quote := masked[start]

	for at := start + 1; at < len(masked); at++ {
		switch {
		case masked[at] == '\\' && quote == '"':
			at++
		case masked[at] == quote && quote == '\'' && strings.HasPrefix(masked[at+1:], "'"):
			at++
		case masked[at] == quote:
			return at + 1
		}
	}

	return len(masked)
}

// blockExtent returns the content of a block whose header begins at an offset. It ends before the first line that is no
// deeper than its parent.
func blockExtent(masked string, start, indentation int) (content, end int) {
	nextLine := func(at int) int { return at + indexOf(masked[at:], func(r rune) bool { return r == '\n' }) + 1 }

	content = min(nextLine(start), len(masked))

	for end = content; end < len(masked); end = min(nextLine(end), len(masked)) {
		text := strings.TrimLeft(masked[end:], " ")
		isBlank := strings.HasPrefix(strings.TrimLeft(text, "\t\r"), "\n")

		if depth := len(masked) - end - len(text); depth <= indentation && !isBlank {
			break
		}
	}

	return content, end
}
