package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// insideVariable is set if the program runs in separate namespaces.
const insideVariable = "BED_NODE_INSIDE"

// private are folders of the machine that the node's programs write to regardless of their flags.
// Each is replaced by an empty file system.
var private = []string{"/run", "/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers"}

// Isolated runs this program again with the same arguments in separate namespaces, and returns its
// exit code. Inside, it returns false immediately. TestMain must call it first. When the inner
// program ends for any reason, the kernel kills everything that it has started.
func Isolated() (ended bool, code int, err error) {
	if os.Getenv(insideVariable) != "" {
		return false, 0, isolate()
	}

	program, err := os.Executable()
	if err != nil {
		return true, 1, err
	}

	inner := exec.Command(program, os.Args[1:]...)

	inner.Env = append(os.Environ(), insideVariable+"=1")
	inner.Stdin, inner.Stdout, inner.Stderr = os.Stdin, os.Stdout, os.Stderr
	inner.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID |
			syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig: syscall.SIGKILL,
	}

	err = inner.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = nil
	}

	return true, inner.ProcessState.ExitCode(), errors.Join(err, removeGroups())
}

// isolate prepares the new namespaces for use.
func isolate() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}

	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}

	for _, folder := range private {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}

		if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "mode=0755"); err != nil {
			return fmt.Errorf("mount an empty %s: %w", folder, err)
		}
	}

	commands := []string{"ip link set lo up"}
	for i := range limit {
		// Without an address of its own, a bridge has that of one of its pods. It changes when this pod ends, and what
		// other pods send to the old one is lost until they notice.
		commands = append(commands,
			fmt.Sprintf("ip link add %s address 02:00:00:00:00:%02x type bridge", bridge(i), i+1),
			"ip addr add "+address(i)+"/24 dev "+bridge(i),
			"ip link set "+bridge(i)+" up",
		)
	}

	// kubelet requires a default route; it leads nowhere
	for _, command := range append(commands, "ip route add default dev "+bridge(0)) {
		args := strings.Fields(command)
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
	}

	return errors.Join(
		os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600),
		os.WriteFile("/proc/sys/net/ipv4/conf/all/route_localnet", []byte("1"), 0o600),
	)
}

// unmount unmounts everything below a folder, the latest mount first, even if containers still use
// it.
func unmount(folder string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}

	var points []string

	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], folder+"/") {
			points = append(points, fields[4])
		}
	}

	var failed []error

	for i := len(points) - 1; i >= 0; i-- {
		// unmounted together with one below it
		if err := syscall.Unmount(points[i], syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			failed = append(failed, fmt.Errorf("unmount %s: %w", points[i], err))
		}
	}

	return errors.Join(failed...)
}

// removeGroups removes the control groups of containers, which remain when their processes end. The
// innermost ones are removed first.
func removeGroups() error {
	var groups []string

	for _, pattern := range []string{"/sys/fs/cgroup" + groupRoot + "*", "/sys/fs/cgroup/*" + groupRoot + "*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}

		for _, root := range found {
			_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					groups = append(groups, path)
				}

				return nil
			})
		}
	}

	var failed []error

	for i := len(groups) - 1; i >= 0; i-- {
		if err := syscall.Rmdir(groups[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("remove control group %s: %w", groups[i], err))
		}
	}

	return errors.Join(failed...)
}
