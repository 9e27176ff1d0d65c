package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ClockVariable names the environment variable by which the clock of an operator of
// BuildOperatorWithClock is ahead, such as 10m or -10m.
const ClockVariable = "CLOCK_OFFSET"

// clockOffset is added to Go's package time.
const clockOffset = `package time

import "syscall"

// clockOffset is by how many seconds the clock is ahead.
var clockOffset = func() int64 {
	value, set := syscall.Getenv("` + ClockVariable + `")
	if !set {
		return 0
	}

	offset, err := ParseDuration(value)
	if err != nil {
		panic(err)
	}

	return int64(offset / Second)
}()
`

// BuildOperatorWithClock builds the operator into a folder, with a clock that can be set to another time by
// ClockVariable. A static program has no other way: it reads the clock without the C library. The
// program is compiled with a changed copy of Go's package time; the monotonic clock stays as it is.
func BuildOperatorWithClock(ctx context.Context, root, folder string) (string, error) {
	overlay, err := writeClock(ctx, folder)
	if err != nil {
		return "", fmt.Errorf("change the clock of the operator: %w", err)
	}

	return Build(ctx, root, folder, OperatorProgram, "-overlay="+overlay)
}

// writeClock writes the changed package time into a folder, and returns the file for the flag -overlay of
// the go command.
func writeClock(ctx context.Context, folder string) (string, error) {
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}

	original := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time")

	source, err := os.ReadFile(filepath.Join(original, "time.go"))
	if err != nil {
		return "", err
	}

	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"

	changed := strings.Replace(string(source), now, now+"\tsec += clockOffset\n", 1)
	if changed == string(source) {
		return "", fmt.Errorf("%s has another function Now in this version of Go", original)
	}

	files := map[string]string{"time.go": changed, "clock_offset.go": clockOffset}
	overlay := struct{ Replace map[string]string }{map[string]string{}}

	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return "", err
		}

		overlay.Replace[filepath.Join(original, name)] = path
	}

	data, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}

	path := filepath.Join(folder, "overlay.json")

	return path, os.WriteFile(path, data, 0o600)
}
