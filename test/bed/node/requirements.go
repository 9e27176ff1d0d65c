// Package node adds a real node to a test bed, on which containers run. containerd and runc come
// from the machine, kubelet and kube-proxy are of the bed's own version. Everything runs in
// separate network, mount and process namespaces, so that it changes nothing on the machine and
// leaves nothing behind. It requires Linux and root.
package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/Masterminds/semver/v3"
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

	for _, program := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "nft", "conntrack", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}

	if len(missing) > 0 {
		return fmt.Errorf(
			"%w: it lacks %s; on Debian: apt-get install "+
				"containerd runc containernetworking-plugins nftables conntrack iproute2",
			ErrUnsuited,
			strings.Join(missing, ", "),
		)
	}

	_, err := plugins()

	return err
}

// HasImageVolumes reports whether containerd of this machine mounts images as volumes, which it does from 2.1 on.
func HasImageVolumes(ctx context.Context) bool {
	out, err := exec.CommandContext(ctx, "containerd", "--version").Output()
	if err != nil {
		return false
	}

	// containerd github.com/containerd/containerd v2.4.2 1234abcd
	words := strings.Fields(string(out))
	if len(words) < 3 {
		return false
	}

	version, err := semver.NewVersion(words[2])

	return err == nil && version.Compare(semver.New(2, 1, 0, "", "")) >= 0
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
