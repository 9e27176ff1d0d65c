package cli

import (
	"strings"
	"unicode/utf8"

	"github.com/mitchellh/go-wordwrap"
)

// Node is a node of a tree: a line of text and its children.
type Node struct {
	Text     string
	Style    Style
	Children []Node
}

// Add appends a child.
func (n *Node) Add(style Style, text string) {
	n.Children = append(n.Children, Node{Text: text, Style: style})
}

// Tree prints a tree. Lines that are too long for the terminal are wrapped.
func (p *Printer) Tree(root Node) { p.tree(root, "", "") }

// minWidth is the least width of text, however deep its node is.
const minWidth = 20

// tree prints a node and its descendants: first precedes the node's first line, rest all others.
func (p *Printer) tree(n Node, first, rest string) {
	bar := rest + "  "
	if len(n.Children) > 0 {
		bar = rest + "│ "
	}

	for i, line := range p.wrap(n.Text, utf8.RuneCountInString(bar)) {
		prefix := bar
		if i == 0 {
			prefix = first
		}

		p.Printf("%s%s", prefix, p.Paint(n.Style, line))
	}

	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			p.tree(child, rest+"└─ ", rest+"   ")
		} else {
			p.tree(child, rest+"├─ ", rest+"│  ")
		}
	}
}

// wrap splits text into lines that fit on the terminal after an indentation.
func (p *Printer) wrap(text string, indentation int) []string {
	text = strings.Join(strings.Fields(text), " ")
	if p.Width == 0 {
		return []string{text}
	}

	return wrap(text, p.Width-indentation)
}

// wrap splits text into lines of a width. Words that are longer than it are kept.
func wrap(text string, width int) []string {
	return strings.Split(wordwrap.WrapString(text, uint(max(width, minWidth))), "\n")
}
