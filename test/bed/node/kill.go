package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Processes returns the processes of a pod's containers. The program must be Isolated.
func Processes(pod string) ([]*os.Process, error) {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}

	var found []*os.Process

	for _, file := range environments {
		environment, _ := os.ReadFile(file) // the process may have ended
		if !slices.Contains(strings.Split(string(environment), "\x00"), "HOSTNAME="+pod) {
			continue
		}

		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}

		process, err := os.FindProcess(pid)
		if err != nil {
			return nil, err
		}

		found = append(found, process)
	}

	if len(found) == 0 {
		return nil, fmt.Errorf("pod %s has no processes", pod)
	}

	return found, nil
}

// Kill kills processes, as a power failure would, without a graceful shutdown. kubelet starts those of a pod again,
// unless the pod has been deleted. Processes that have ended meanwhile are left out.
func Kill(processes []*os.Process) error {
	for _, process := range processes {
		if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("kill process %d: %w", process.Pid, err)
		}
	}

	return nil
}
