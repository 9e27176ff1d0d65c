// Command profile runs a command, and prints how much processor time the programs took that ran under it: by program,
// and by the suite that ran them. It reads /proc, so it requires Linux.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// interval is the time between two readings of /proc, which takes tens of milliseconds on a busy machine.
const interval = 500 * time.Millisecond

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: profile command [arguments]")
		os.Exit(2)
	}

	root, err := filepath.Abs(".")
	if err != nil {
		fail(err)
	}

	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr

	if err := cmd.Start(); err != nil {
		fail(err)
	}

	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	p := newProfile(root, cmd.Process.Pid)
	ticker := time.NewTicker(interval)

	for {
		select {
		case <-ticker.C:
			if err := p.sample(); err != nil {
				fail(err)
			}
		case err := <-ended:
			fmt.Print(p)
			fmt.Printf("\nThe programs that were waited for have taken %.0f s by the kernel's count.\n",
				(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())

			if err != nil {
				fail(err)
			}

			return
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "profile:", err)
	os.Exit(1)
}
