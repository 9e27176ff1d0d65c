package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// screen is where a command prints: it knows about colours, the width and the format that a person
// asked for.
type screen struct {
	io.Writer
	format, color string

	colored bool
	width   int // of a line; 0 means without end
}

// screenFlags gives a command the flags for its output; text is always a format, and the first.
func screenFlags(flags *pflag.FlagSet, formats ...string) *screen {
	s := &screen{format: "text"}
	flags.StringVarP(
		&s.format,
		"output",
		"o",
		s.format,
		"how to print: "+strings.Join(append([]string{"text"}, formats...), ", "),
	)
	flags.StringVar(
		&s.color,
		"color",
		"auto",
		"whether to use colours: auto, always, never; auto looks at the terminal and at NO_COLOR",
	)

	return s
}

// open takes the output and checks the flags.
func (s *screen) open(out io.Writer) error {
	s.Writer = out
	if !slices.Contains([]string{"text", "json", "yaml"}, s.format) {
		return fmt.Errorf("--output is %q; give text, json or yaml", s.format)
	}

	terminal := false
	if file, ok := out.(*os.File); ok {
		terminal = term.IsTerminal(int(file.Fd()))
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			s.width = width
		}
	}

	switch s.color {
	case "auto":
		s.colored = terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	case "always":
		s.colored = true
	case "never":
	default:
		return fmt.Errorf("--color is %q; give auto, always or never", s.color)
	}

	return nil
}

// data prints a value if the format is one for programs, and reports whether it was.
func (s *screen) data(value any) (bool, error) {
	switch s.format {
	case "json":
		encoder := json.NewEncoder(s)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)

		return true, encoder.Encode(value)
	case "yaml":
		text, err := yaml.Marshal(value)
		if err == nil {
			_, err = s.Write(text)
		}

		return true, err
	}

	return false, nil
}

// style is a colour of the terminal.
type style int

// The styles, as ANSI numbers them.
const (
	plain  style = 0
	bold   style = 1
	red    style = 31
	green  style = 32
	yellow style = 33
	cyan   style = 36
)

// paint puts a text into a style, line by line, as pagers want it.
func (s *screen) paint(st style, text string) string {
	if !s.colored || st == plain || text == "" {
		return text
	}

	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = fmt.Sprintf("\x1b[%dm%s\x1b[0m", st, line)
		}
	}

	return strings.Join(lines, "\n")
}

// node is a part of a tree.
type node struct {
	text  string
	style style
	nodes []node
}

// narrowest is the least room that a text is given, however deep it stands.
const narrowest = 20

// tree prints a node and what belongs to it. Lines that are too long for the terminal go on below
// themselves.
func (s *screen) tree(n node, first, rest string) {
	bar := rest + "  "
	if len(n.nodes) > 0 {
		bar = rest + "│ "
	}

	width := 0
	if s.width > 0 {
		width = max(s.width-utf8.RuneCountInString(bar), narrowest)
	}

	for i, line := range wrap(n.text, width) {
		if i == 0 {
			fmt.Fprintln(s, first+s.paint(n.style, line))
		} else {
			fmt.Fprintln(s, bar+s.paint(n.style, line))
		}
	}

	for i, child := range n.nodes {
		if i == len(n.nodes)-1 {
			s.tree(child, rest+"└─ ", rest+"   ")
		} else {
			s.tree(child, rest+"├─ ", rest+"│  ")
		}
	}
}

// wrap cuts a text between words; a width of 0 is without end.
func wrap(text string, width int) []string {
	if width == 0 {
		return []string{text}
	}

	var lines []string

	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}

		line = strings.TrimPrefix(line+" "+word, " ")
	}

	return append(lines, line)
}

// table prints rows in columns as wide as what they hold; the first row is the head. A cell's style
// does not change its width.
func (s *screen) table(rows [][]string, styles func(row, column int) style) {
	var widths []int

	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}

			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}

	for r, row := range rows {
		var line strings.Builder

		for c, cell := range row {
			padding := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell)+2)
			line.WriteString(s.paint(styles(r, c), cell) + padding)
		}

		fmt.Fprintln(s, strings.TrimRight(line.String(), " "))
	}
}
