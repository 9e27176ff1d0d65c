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

// Kill kills the processes of a pod's containers, as a power failure would, without a graceful shutdown. kubelet starts
// them again, unless the pod has been deleted. The program must be Isolated.
func Kill(pod string) error {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}

	found := false

	for _, file := range environments {
		environment, _ := os.ReadFile(file) // the process may have ended
		if !slices.Contains(strings.Split(string(environment), "\x00"), "HOSTNAME="+pod) {
			continue
		}

		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return err
		}

		victim, err := os.FindProcess(pid)
		if err != nil {
			return err
		}

		if err := victim.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("kill process %d of pod %s: %w", pid, pod, err)
		}

		found = true
	}

	if !found {
		return fmt.Errorf("pod %s has no processes", pod)
	}

	return nil
}
