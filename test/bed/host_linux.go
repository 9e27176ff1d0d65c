package bed

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes makes the kernel kill a child when this process dies, even from SIGKILL, and
// shields the children from a terminal's Ctrl-C, so that Stop ends them.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// port is a TCP port of the loopback address that no other process can get until it is released. It
// is bound but does not listen; the program that uses it must bind it with SO_REUSEPORT.
type port struct {
	number int
	socket int
}

func reservePort() (*port, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}

	p := &port{socket: socket}
	if p.number, err = bindAnyPort(socket); err != nil {
		_ = p.release()
		return nil, fmt.Errorf("reserve a port: %w", err)
	}

	return p, nil
}

func bindAnyPort(socket int) (int, error) {
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}

	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}

	address, err := unix.Getsockname(socket)
	if err != nil {
		return 0, err
	}

	return address.(*unix.SockaddrInet4).Port, nil
}

func (p *port) release() error {
	if p == nil {
		return nil
	}

	return unix.Close(p.socket)
}
