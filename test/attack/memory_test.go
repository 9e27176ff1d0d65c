package attack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// memoryLimit is limits.memory of the chart, and goMemory what the chart leaves to the Go heap.
const (
	memoryLimit = 512 << 20
	goMemory    = memoryLimit / 10 * 8
)

// memoryGroup limits the memory of the operator, as a container's limit does. Where there are no control
// groups of version 1, or no permission to make one, nothing is limited and a line says so.
type memoryGroup struct {
	dir string // empty without a limit
}

func newMemoryGroup(t *testing.T) *memoryGroup {
	dir := fmt.Sprintf("/sys/fs/cgroup/memory/capstan-attack-%d", os.Getpid())

	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), fmt.Append(nil, memoryLimit), 0o600)
	}

	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		fmt.Printf("The operator's memory is not limited: %v\n", err)
		return &memoryGroup{}
	}

	if err != nil {
		t.Fatal(err)
	}

	m := &memoryGroup{dir: dir}
	t.Cleanup(m.remove)

	return m
}

// remove ends the processes that are left in the group, and the group.
func (m *memoryGroup) remove() {
	text, _ := os.ReadFile(filepath.Join(m.dir, "cgroup.procs"))

	for _, line := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			continue
		}

		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill()
		}
	}

	_ = os.Remove(m.dir)
}

// command returns a command that ends with the program and runs it in the group, with the variable
// of the environment.
func (m *memoryGroup) command(variable, program string) []string {
	script := `exec "$0" "$@"`
	if m.dir != "" {
		script = "echo $$ > " + filepath.Join(m.dir, "cgroup.procs") + "; " + script
	}

	// The tests may collect less garbage than a container does.
	memory := []string{"GOGC=100", fmt.Sprintf("GOMEMLIMIT=%d", goMemory)}

	return slices.Concat([]string{"env", variable}, memory, []string{"sh", "-c", script, program})
}

// kills returns how many processes of the group were killed because the memory was used up.
func (m *memoryGroup) kills() int {
	if m.dir == "" {
		return 0
	}

	text, _ := os.ReadFile(filepath.Join(m.dir, "memory.oom_control"))

	var count int

	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "oom_kill %d", &count)
	}

	return count
}
