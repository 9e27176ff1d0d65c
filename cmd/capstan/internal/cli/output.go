package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

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
)

var formats = []string{FormatTable, FormatJSON, FormatYAML}

// OutputFlags are the flags of commands that print data.
type OutputFlags struct{ format, color string }

// AddOutputFlags adds --output and --color to a command.
func AddOutputFlags(flags *pflag.FlagSet) *OutputFlags {
	f := &OutputFlags{}
	flags.StringVarP(
		&f.format,
		"output",
		"o",
		FormatTable,
		"Output format: "+strings.Join(formats, ", ")+".",
	)
	SetValues(flags, "output", formats...)
	flags.StringVar(
		&f.color,
		"color",
		"auto",
		"When to use colors: auto, always, never. With auto: on terminals, unless NO_COLOR is set.",
	)
	SetValues(flags, "color", "auto", "always", "never")

	return f
}

// Printer returns the printer for an output stream. It is an error if the flags have unknown
// values.
func (f *OutputFlags) Printer(out io.Writer) (*Printer, error) {
	if !slices.Contains(formats, f.format) {
		return nil, fmt.Errorf("unknown --output %q; use one of %s", f.format, strings.Join(formats, ", "))
	}

	p := &Printer{Writer: out, Format: f.format}

	file, isFile := out.(*os.File)
	terminal := isFile && IsTerminal(file)

	if terminal {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			p.Width = width
		}
	}

	switch f.color {
	case "auto":
		p.Color = terminal && os.Getenv("NO_COLOR") == ""
	case "always":
		p.Color = true
	case "never":
	default:
		return nil, fmt.Errorf("unknown --color %q; use auto, always or never", f.color)
	}

	return p, nil
}

// IsTerminal reports whether a file is a terminal that understands escape sequences.
func IsTerminal(file *os.File) bool {
	return term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
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

// Table prints rows in aligned columns below a header. Without a header there are only the rows.
func (p *Printer) Table(header []string, rows []Row) error {
	if len(header) > 0 {
		rows = append([]Row{{Cells: header, Style: Bold}}, rows...)
	}

	var text strings.Builder

	w := tabwriter.NewWriter(&text, 0, 8, 3, ' ', 0)

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
		p.Printf("%s", p.Paint(row.Style, strings.TrimRight(lines[i], " ")))
	}

	return nil
}
