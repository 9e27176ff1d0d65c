package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// arena is the step in bytes in which Go's runtime reserves address space for the heap on 64-bit systems.
const arena = 64 << 20

// restrict limits the memory, the time and the access of this process. It must not open anything
// afterwards: even the program's own files are out of reach.
func restrict() error {
	// When memory is short, the system must end this process, and not the operator. Best effort.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)

	// Nothing that this process could start would have more privileges. Best effort, on all threads.
	_, _, _ = syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)

	size, err := addressSpace()
	if err != nil {
		return err
	}

	const memory = limit.RenderMemory + threadStacks

	seconds := uint64(cpuTime / time.Second)

	for _, l := range []struct {
		resource int
		limit    unix.Rlimit
	}{
		{unix.RLIMIT_DATA, unix.Rlimit{Cur: memory, Max: memory}},
		// The kernel does not compare memory in a range that is already reserved with the limit above, and
		// Go reserves the range of a large allocation first.
		{unix.RLIMIT_AS, unix.Rlimit{Cur: size + memory + arena, Max: size + memory + arena}},
		{unix.RLIMIT_CPU, unix.Rlimit{Cur: seconds, Max: seconds}},
		{unix.RLIMIT_CORE, unix.Rlimit{}},
		{unix.RLIMIT_FSIZE, unix.Rlimit{}},
		{unix.RLIMIT_NOFILE, unix.Rlimit{}}, // neither files nor connections
	} {
		if err := unix.Setrlimit(l.resource, &l.limit); err != nil {
			return fmt.Errorf("limit resource %d of the process: %w", l.resource, err)
		}
	}

	return nil
}

// addressSpace returns the size in bytes of the address space of this process, most of which is reserved
// by Go's runtime and not used.
func addressSpace() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("read the size of the process: %w", err)
	}

	first, _, _ := strings.Cut(string(text), " ")

	pages, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the size of the process: %w", err)
	}

	return pages * uint64(os.Getpagesize()), nil
}

// processorTime returns how much processor time this process has taken.
func processorTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return cpuTime
	}

	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
