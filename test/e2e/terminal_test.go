package e2e

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/creack/pty"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

// terminalSession is a command that runs on a terminal of its own.
type terminalSession struct {
	start time.Time
	// keyboard is what the user types on.
	keyboard *os.File
	// screen has all that was shown.
	screen *gbytes.Buffer
	// exited receives the exit code.
	exited chan int
}

// onTerminal starts the program on a terminal.
func (c commandLine) onTerminal(ctx context.Context, args ...string) *terminalSession {
	GinkgoHelper()

	cmd := c.command(ctx, args...)
	cmd.Env = append(cmd.Env, "TERM=xterm")

	s := &terminalSession{start: time.Now(), screen: gbytes.NewBuffer(), exited: make(chan int, 1)}

	var err error

	s.keyboard, err = pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 160})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(s.keyboard.Close)

	go func() {
		// It ends with an error when the program does.
		_, _ = io.Copy(io.MultiWriter(s.screen, GinkgoWriter), s.keyboard)
		_ = cmd.Wait()

		s.exited <- cmd.ProcessState.ExitCode()
	}()

	return s
}

// enter types a line.
func (s *terminalSession) enter(line string) {
	GinkgoHelper()

	_, err := s.keyboard.WriteString(line + "\n")
	Expect(err).NotTo(HaveOccurred())
}
