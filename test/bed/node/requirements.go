// Package node adds a real node to a test bed, on which containers run. runc and the network plugins
// come from the machine, containerd, kubelet and kube-proxy are the bed's own. Everything runs in
// separate network, mount and process namespaces, so that it changes nothing on the machine and
// leaves nothing behind. It requires Linux and root.
package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// ErrUnsuited is returned if this machine cannot run a real node; the message says what is missing.
var ErrUnsuited = errors.New("no real node on this machine")

// pluginFolders are where distributions install the network plugins (CNI).
var pluginFolders = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// Suited returns nil if this machine can run a real node, and otherwise an ErrUnsuited that
// explains what to do.
func Suited() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%w: it requires Linux", ErrUnsuited)
	}

	if os.Getuid() != 0 {
		return fmt.Errorf("%w: it requires root", ErrUnsuited)
	}

	var missing []string

	for _, program := range []string{"runc", "nft", "conntrack", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}

	if len(missing) > 0 {
		return fmt.Errorf(
			"%w: it lacks %s; on Debian: apt-get install "+
				"runc containernetworking-plugins nftables conntrack iproute2",
			ErrUnsuited,
			strings.Join(missing, ", "),
		)
	}

	_, err := plugins()

	return err
}

// plugins returns the folder of the network plugins.
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
