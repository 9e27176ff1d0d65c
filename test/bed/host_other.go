//go:build !linux

package bed

import (
	"fmt"
	"net"
	"syscall"
)

// childAttributes returns nothing special: only Linux kills the children of a process that dies. On
// other systems, only Stop ends the components of a bed.
func childAttributes() *syscall.SysProcAttr { return nil }

// port is a TCP port of the loopback address that was free a moment ago.
type port struct {
	number int
}

func reservePort() (*port, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	p := &port{number: listener.Addr().(*net.TCPAddr).Port}
	if err := listener.Close(); err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	return p, nil
}

func (p *port) release() error { return nil }
