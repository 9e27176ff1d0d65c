package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/controllers/object"
)

// The formats of --output.
const (
	FormatTable = "table"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
	// Some commands have these as well.
	FormatTree = "tree"
	FormatWide = "wide"
	FormatName = "name"
)

// OutputFlags are the flags of commands that print data.
type OutputFlags struct {
	flags         *pflag.FlagSet
	format, color string
	formats       []string
}

// AddOutputFlags adds --output and --color to a command, which may have more formats than all have.
func AddOutputFlags(flags *pflag.FlagSet, more ...string) *OutputFlags {
	formats := append([]string{FormatTable, FormatJSON, FormatYAML}, more...)
	f := &OutputFlags{flags: flags, formats: formats}
	flags.StringVarP(&f.format, "output", "o", FormatTable, "Output format: "+strings.Join(formats, ", ")+".")
	SetValues(flags, "output", formats...)
	flags.StringVar(&f.color, "color", "auto", "Colors: auto, always, never.")
	SetValues(flags, "color", "auto", "always", "never")

	return f
}

// Given reports whether the user has chosen a format.
func (f *OutputFlags) Given() bool { return f.flags.Changed("output") }

// Printer returns the printer for an output stream. It is an error if the flags have unknown
// values.
func (f *OutputFlags) Printer(out io.Writer) (*Printer, error) {
	if !slices.Contains(f.formats, f.format) {
		return nil, fmt.Errorf("unknown --output %q; use one of %s", f.format, strings.Join(f.formats, ", "))
	}

	p := &Printer{Writer: out, Format: f.format}

	p.Width = Width(out)

	switch f.color {
	case "auto":
		p.Color = p.Width > 0 && os.Getenv("NO_COLOR") == ""
	case "always":
		p.Color = true
	case "never":
	default:
		return nil, fmt.Errorf("unknown --color %q; use auto, always or never", f.color)
	}

	return p, nil
}

// The size of a terminal which does not tell it.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// Width returns the number of columns of a stream if it is a terminal that understands escape sequences, else 0.
func Width(stream any) int {
	width, _ := size(stream)

	return width
}

// size returns the columns and rows of the terminal that a stream is; 0 if it is none.
func size(stream any) (width, height int) {
	file, isFile := stream.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return 0, 0
	}

	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width == 0 || height == 0 {
		return defaultWidth, defaultHeight
	}

	return width, height
}

// Printer prints values in a format.
type Printer struct {
	io.Writer
	Format string
	Color  bool
	Width  int // of a line; 0 means unlimited
}

// Print prints a value as JSON or YAML, or calls human for a table.
func (p *Printer) Print(value any, human func() error) error {
	switch p.Format {
	case FormatJSON:
		encoder := json.NewEncoder(p)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)

		return encoder.Encode(value)
	case FormatYAML:
		data, err := yaml.Marshal(value)
		if err != nil {
			return err
		}

		_, err = p.Write(data)

		return err
	}

	return human()
}

// PrintList prints values as data, or as a table below a header with a row for each of them.
func PrintList[T any](p *Printer, header []string, values []T, row func(T) Row) error {
	return p.Print(values, func() error { return p.Table(header, Map(values, row)) })
}

// Map returns the results of a function for the items of a list.
func Map[S, T any](list []S, to func(S) T) []T {
	made := make([]T, len(list))
	for i, item := range list {
		made[i] = to(item)
	}

	return made
}

// Printf prints a line.
func (p *Printer) Printf(format string, args ...any) {
	text := Text
	if p.Color {
		text = styledText
	}

	fmt.Fprintln(p, text(fmt.Sprintf(format, args...)))
}

// Style is a color or weight of text.
type Style int

// The styles. Their values are those of ANSI escape sequences.
const (
	Plain  Style = 0
	Bold   Style = 1
	Red    Style = 31
	Green  Style = 32
	Yellow Style = 33
	Cyan   Style = 36
)

// Paint returns a line of text in a style.
func (p *Printer) Paint(style Style, line string) string {
	if !p.Color || style == Plain || line == "" {
		return line
	}

	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", style, line)
}

// Row is a row of a table.
type Row struct {
	Cells []string
	Style Style
}

// Table prints rows in aligned columns below a header. Without a header there are only the rows. On a terminal, the
// last cell of a row is wrapped, and what precedes it is cut.
func (p *Printer) Table(header []string, rows []Row) error {
	if len(header) > 0 {
		rows = append([]Row{{Cells: header, Style: Bold}}, rows...)
	}

	var text strings.Builder

	w := tabwriter.NewWriter(&text, 0, 8, columnGap, ' ', 0)

	for _, row := range rows {
		cells := make([]string, len(row.Cells))
		for i, cell := range row.Cells {
			cells[i] = object.Printable(cell)
		}

		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}

	if err := w.Flush(); err != nil {
		return err
	}

	// Escape sequences would count as width, so lines are painted after they are aligned.
	lines := strings.Split(text.String(), "\n")

	for i, row := range rows {
		last := object.Printable(row.Cells[len(row.Cells)-1])

		for _, part := range p.wrapLast(strings.TrimRight(lines[i], " "), strings.TrimRight(last, " ")) {
			p.Printf("%s", p.Paint(row.Style, strings.TrimRight(part, " ")))
		}
	}

	return nil
}

// wrapLast returns a line with its last cell wrapped: in its column if that has room, else below the others.
func (p *Printer) wrapLast(line, last string) []string {
	const (
		room        = 40
		indentation = 2
	)

	others := strings.TrimSuffix(line, last)
	column := utf8.RuneCountInString(others)

	if p.Width == 0 || column+utf8.RuneCountInString(last) <= p.Width {
		return []string{line}
	}

	if p.Width-column >= room {
		wrapped := p.wrap(last, column)
		for i := range wrapped[1:] {
			wrapped[i+1] = strings.Repeat(" ", column) + wrapped[i+1]
		}

		wrapped[0] = others + wrapped[0]

		return wrapped
	}

	lines := []string{Cut(strings.TrimRight(others, " "), p.Width)}
	if last == "" {
		return lines
	}

	for _, part := range p.wrap(last, indentation) {
		lines = append(lines, strings.Repeat(" ", indentation)+part)
	}

	return lines
}

// columnGap is the number of spaces between columns.
const columnGap = 3

// Cut returns as much of a line as fits into a number of columns; 0 means that all does.
func Cut(line string, width int) string {
	runes := []rune(line)
	if width == 0 || len(runes) <= width {
		return line
	}

	return strings.TrimRight(string(runes[:width-1]), " ") + "…"
}
