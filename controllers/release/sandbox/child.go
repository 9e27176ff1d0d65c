package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// childName is the name that a program is called by to render a chart instead of what it usually does.
const childName = "capstan-render-chart"

// gcPercent is Go's default for the garbage collector, which the parent turns off until the child has started.
const gcPercent = 100

// What a process may have used before it renders another chart. Those of real providers take less.
const (
	modestTime   = 500 * time.Millisecond
	modestMemory = 32 << 20 // bytes
)

// init makes every program that can render charts, tests included, its own child. Packages that do not
// matter to the child, the program's main among them, are not even initialized then.
func init() { //nolint:gochecknoinits // see above
	if os.Args[0] != childName {
		return
	}

	if err := child(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	os.Exit(0)
}

// child restricts this process, and answers requests until there are none, or it takes no more.
func child(in io.Reader, out io.Writer) error {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(limit.RenderMemory / 4 * 3)
	debug.SetMaxStack(limit.RenderMemory / 4)

	if err := restrict(); err != nil {
		return err
	}

	for more := true; more; {
		request, _, err := readMessage(in, math.MaxUint32)
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return err
		}

		overtime := time.AfterFunc(wallTime, func() { os.Exit(1) }) // if the parent has died

		answer, err := answerTo(request)
		if err != nil {
			return err
		}

		more = modest()
		if err := writeMessage(out, answer, more); err != nil {
			return err
		}

		overtime.Stop()
	}

	return nil
}

// answerTo renders a chart.
func answerTo(encoded []byte) ([]byte, error) {
	var request struct {
		Request
		Values json.RawMessage
	}
	if err := json.Unmarshal(encoded, &request); err != nil {
		return nil, err
	}

	// Templates print whole numbers without an exponent only if they are integers.
	if err := utiljson.Unmarshal(request.Values, &request.Request.Values); err != nil {
		return nil, err
	}

	var result answer

	rendered, err := render(&request.Request)
	if err != nil {
		result.Error = message(err)
	} else {
		result.Result = *rendered
	}

	var text bytes.Buffer

	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)

	if err := encoder.Encode(result); err != nil {
		return nil, err
	}

	return text.Bytes(), nil
}

// modest reports whether this process has used so little that its limits are those of a new one for the next chart.
func modest() bool {
	var memory runtime.MemStats

	runtime.ReadMemStats(&memory)

	return processorTime() < modestTime && memory.Sys-memory.HeapReleased < modestMemory
}

// message returns the text of an error.
func message(err error) string {
	if text := err.Error(); len(text) <= maxError {
		return text
	}

	return "the message of the error is too long to be shown"
}

// render renders a chart.
func render(request *Request) (*Result, error) {
	c, err := load(request)
	if err != nil {
		return nil, err
	}

	values := request.Values
	if values == nil {
		values = map[string]any{}
	}

	files, err := helm.Render(c, values, request.Release)
	if err != nil {
		return nil, err
	}

	if err := checkFiles(files); err != nil {
		return nil, err
	}

	manifest, notes, err := helm.Sort(c.Name(), files)
	if err != nil {
		return nil, err
	}

	stored := &helm.Chart{Metadata: c.Metadata, Values: c.Values, Schema: c.Schema}

	return &Result{Manifest: manifest, Notes: notes, Chart: stored}, checkChart(stored)
}

// load returns the chart as Helm's type. The values of one with dependencies would have to be merged.
func load(request *Request) (*helm.Chart, error) {
	files := make([]*helm.BufferedFile, 0, len(request.Files))
	for _, f := range request.Files {
		files = append(files, &helm.BufferedFile{Name: f.Name, Data: f.Data})
	}

	c, err := helm.Load(files)
	if err != nil {
		return nil, err
	}

	if len(c.Dependencies()) > 0 {
		return nil, errors.New("it has dependencies, which charts of providers do not have; install it with helm, Flux or " +
			"Argo CD")
	}

	return c, checkReferences(c.Schema)
}

// checkFiles returns an error if the parent would need too much memory for the rendered files.
func checkFiles(files map[string]string) error {
	size, values, objects := 0, 0, 0

	for name, text := range files {
		if size += len(text); size > MaxRendered {
			return tooLarge()
		}

		if helm.IsNotes(name) {
			continue
		}

		found, err := limit.Documents(text)
		if err != nil {
			return fmt.Errorf("%s %w", name, err)
		}

		documents := helm.SplitManifests(text)
		values += found
		objects += len(documents)

		if values > MaxValues || objects > MaxObjects {
			return tooLarge()
		}

		for _, document := range documents {
			var decoded any
			if yaml.Unmarshal([]byte(document), &decoded) != nil {
				continue // Helm reports that
			}

			if err := limit.Depth(decoded); err != nil {
				return fmt.Errorf("%s %w", name, err)
			}
		}
	}

	return nil
}

// checkChart returns an error if the parent would need too much memory for the chart.
func checkChart(c *helm.Chart) error {
	var encoded bytes.Buffer
	if err := json.NewEncoder(&encoded).Encode(c); err != nil {
		return err
	}

	if encoded.Len() > maxChart || limit.List(encoded.Bytes(), MaxValues) != nil {
		return fmt.Errorf("its metadata, default values and schema are larger than %d MiB or have more than %d values",
			maxChart>>20, MaxValues)
	}

	return nil
}
