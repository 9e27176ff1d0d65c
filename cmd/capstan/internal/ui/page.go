package ui

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/object"
)

//go:embed templates/*.html
var templateFiles embed.FS

// staticFiles are the style sheet, the script and the icon.
//
//go:embed static
var staticFiles embed.FS

// templates returns the pages, which have the names of their files. The command line starts without parsing them.
var templates = sync.OnceValue(func() *template.Template {
	functions := template.FuncMap{
		"join":        strings.Join,
		"level":       level,
		"shortDigest": view.ShortDigest,
	}

	return template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/*.html"))
})

// Frame is what all pages have around their content.
type Frame struct {
	// Base is the path of the overview, which ends in a slash.
	Base string
	// Cluster is what the page shows; empty if it has no name.
	Cluster string
	// Now is when the cluster was read.
	Now time.Time
}

// Timestamp returns a time for machines.
func (Frame) Timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Clock returns when the cluster was read, for readers.
func (f Frame) Clock() string { return f.Now.UTC().Format("15:04:05 UTC") }

// Age returns how long ago a time is, as kubectl does; empty for the zero time.
func (f Frame) Age(since time.Time) string {
	if since.IsZero() {
		return ""
	}

	return duration.HumanDuration(f.Now.Sub(since))
}

// Choice is an option that a form offers.
type Choice struct {
	Value, Text string
	Selected    bool
}

// Problem is a page with an error message.
type Problem struct {
	Frame

	Title   string
	Message string
}

// render returns a page as HTML, without control characters, which its texts may have. Its argument is a pointer to a
// page, whose type has the name of the template.
func render(page any) ([]byte, error) {
	var out bytes.Buffer
	if err := templates().ExecuteTemplate(&out, reflect.TypeOf(page).Elem().Name()+".html", page); err != nil {
		return nil, fmt.Errorf("render the page: %w", err)
	}

	lines := strings.Split(out.String(), "\n")
	for i, line := range lines {
		lines[i] = object.Printable(line)
	}

	return []byte(strings.Join(lines, "\n")), nil
}
