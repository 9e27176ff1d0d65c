package sandbox

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// restrict limits the memory, the time and the access of this process. It must not open anything
// afterwards: even the program's own files are out of reach.
func restrict() error {
	// When memory is short, the system must end this process, and not the operator. Best effort.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)

	// Nothing that this process could start would have more privileges. Best effort, on all threads.
	_, _, _ = syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)

	const memory = limit.RenderMemory + threadStacks

	seconds := uint64(cpuTime / time.Second)

	for _, l := range []struct {
		resource int
		limit    unix.Rlimit
	}{
		{unix.RLIMIT_DATA, unix.Rlimit{Cur: memory, Max: memory}},
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
