// Package node gives a test bed a real node, on which containers run: containerd and runc of the
// machine, kubelet and kube-proxy of the bed's own version. Everything happens in namespaces of its
// own (network, mounts, processes), so that nothing on the machine is touched and nothing stays
// behind. It takes Linux and root.
package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// ErrUnsuited says that this machine cannot have a real node, and what it lacks.
var ErrUnsuited = errors.New("no real node on this machine")

// pluginFolders are where distributions keep the plugins of the container network interface.
var pluginFolders = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// Suited reports whether this machine can have a real node; else the error is ErrUnsuited and tells
// what to do.
func Suited() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%w: it takes Linux", ErrUnsuited)
	}

	if os.Getuid() != 0 {
		return fmt.Errorf("%w: it takes root", ErrUnsuited)
	}

	var missing []string

	for _, program := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "nft", "conntrack", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}

	if len(missing) > 0 {
		return fmt.Errorf(
			"%w: it lacks %s; on Debian: apt-get install containerd runc containernetworking-plugins nftables conntrack iproute2",
			ErrUnsuited,
			strings.Join(missing, ", "),
		)
	}

	_, err := plugins()

	return err
}

// plugins is the folder of the network plugins.
func plugins() (string, error) {
	for _, folder := range pluginFolders {
		if _, err := os.Stat(folder + "/bridge"); err == nil {
			return folder, nil
		}
	}

	return "", fmt.Errorf(
		"%w: none of %s has the network plugin bridge; on Debian: apt-get install containernetworking-plugins",
		ErrUnsuited,
		strings.Join(pluginFolders, ", "),
	)
}
