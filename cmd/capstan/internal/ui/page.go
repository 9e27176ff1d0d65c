package ui

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/capstan-project/capstan/controllers/object"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

// templates returns the pages, which have the names of their files. The command line starts without parsing them.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.ParseFS(templateFiles, "templates/*.html"))
})

// staticFolder has the style sheet, the script and the icon.
func staticFolder() fs.FS {
	files, err := fs.Sub(staticFiles, "static")
	if err != nil {
		panic(err) // the folder is part of the program
	}

	return files
}

// Frame is what all pages have around their content.
type Frame struct {
	// Base is the path of the overview, which ends in a slash.
	Base string
	// Cluster is what the page shows; empty if it has no name.
	Cluster string
	// Now is when the cluster was read.
	Now time.Time
}

// AsOf returns when the cluster was read, for machines.
func (f Frame) AsOf() string { return f.Now.UTC().Format(time.RFC3339) }

// Clock returns when the cluster was read, for readers.
func (f Frame) Clock() string { return f.Now.UTC().Format("15:04:05 UTC") }

// age returns how long ago a time is, as kubectl does; empty for the zero time.
func (f Frame) age(since time.Time) string {
	if since.IsZero() {
		return ""
	}

	return duration.HumanDuration(f.Now.Sub(since))
}

// Problem is a page with an error message.
type Problem struct {
	Frame

	Title   string
	Message string
}

// render returns a page as HTML. Its argument is a pointer to a page, whose texts are changed so that they contain no
// control characters.
func render(page any) ([]byte, error) {
	value := reflect.ValueOf(page).Elem()
	clean(value)

	var out bytes.Buffer
	if err := templates().ExecuteTemplate(&out, value.Type().Name()+".html", page); err != nil {
		return nil, fmt.Errorf("render the page: %w", err)
	}

	return out.Bytes(), nil
}

// clean makes all texts in a value printable.
func clean(value reflect.Value) {
	switch value.Kind() {
	case reflect.String:
		value.SetString(object.Printable(value.String()))
	case reflect.Slice:
		for i := range value.Len() {
			clean(value.Index(i))
		}
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[time.Time]() {
			return
		}

		for i := range value.NumField() {
			clean(value.Field(i))
		}
	}
}
