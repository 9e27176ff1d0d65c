// Package sandbox renders charts in a child process. A chart can contain any template, and a template
// of a few bytes can take gigabytes of memory or hours of time, which nothing in the process that
// runs it could stop. The child is this program itself. It has little memory and time, no
// environment, and can open neither files nor connections, so a template cannot read what the
// operator can. A child that needed little for a chart renders the next one, too.
package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// Limits of the child. The largest real provider takes 0.2 s and 50 MiB.
const (
	cpuTime  = 5 * time.Second
	wallTime = 15 * time.Second
	// MaxRendered is the maximum size of all rendered files in bytes. Helm can store 1 MiB of them,
	// compressed.
	MaxRendered = 4 << 20
	// MaxValues is the maximum number of scalars, lists and maps in the rendered files. Objects are
	// parsed several times, and take a hundred bytes for each value then.
	MaxValues = 50000
	// MaxObjects is the maximum number of objects.
	MaxObjects = 2000
	// maxChart is the maximum size of the default values, the schema and the metadata in bytes.
	maxChart = 2 << 20
	// maxAnswer is the maximum size of the child's answer, which is JSON, in bytes.
	maxAnswer = 3 * (MaxRendered + maxChart)
	// maxError is the maximum size of an error in bytes. A longer one is not shown at all: values can
	// be removed from complete messages only.
	maxError = 1 << 20
)

// Request is what a chart is rendered from.
type Request struct {
	Files   []chart.File
	Values  map[string]any
	Release helm.ReleaseOptions
}

// Result is a rendered chart, as Helm records it.
type Result struct {
	// Manifest has the objects in the order of installation.
	Manifest string
	Notes    string
	// Chart is the chart as it is recorded with the release: without templates and files.
	Chart *helm.Chart
}

// answer is what the child writes.
type answer struct {
	Result
	Error string
}

// ChartError reports that the chart cannot be rendered with these values. Its text may quote values.
type ChartError struct{ Message string }

func (e *ChartError) Error() string { return e.Message }

// Render renders a chart. Only as much memory is used for the tenant, and for all tenants, as the
// package limit allows; until then it waits. The error is a *ChartError unless there is no child or the context ended.
func Render(ctx context.Context, tenant string, request Request) (*Result, error) {
	if name := invalidText(request.Values); name != "" {
		return nil, &ChartError{fmt.Sprintf("the value of %s is not valid UTF-8; encode it in base64", name)}
	}

	input, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("render a chart: %w", err)
	}

	release, err := limit.Content.Acquire(ctx, tenant, limit.RenderMemory)
	if err != nil {
		return nil, fmt.Errorf("wait for memory to render a chart: %w", err)
	}
	defer release()

	output, err := processes.render(ctx, input)
	if err != nil {
		return nil, err
	}

	return decode(output)
}

// processes are the children of this process.
var processes pool

// decode returns the result that the child answered, or its error.
func decode(output []byte) (*Result, error) {
	var result answer
	if err := json.Unmarshal(output, &result); err != nil {
		return nil, fmt.Errorf("render a chart: the child process answers %w", err)
	}

	if result.Error != "" {
		return nil, &ChartError{result.Error}
	}

	return &result.Result, nil
}

// invalidText returns the key of a text that is not UTF-8, which JSON cannot hold.
func invalidText(values map[string]any) string {
	for key, value := range values {
		switch value := value.(type) {
		case map[string]any:
			if name := invalidText(value); name != "" {
				return key + "." + name
			}
		case string:
			if !utf8.ValidString(value) {
				return key
			}
		}
	}

	return ""
}

func tooLarge() error {
	return &ChartError{fmt.Sprintf("the rendered chart is larger than %d MiB, or has more than %d values or %d objects; "+
		"split the chart, or put CRDs into crds/", MaxRendered>>20, MaxValues, MaxObjects)}
}
