package bed

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
)

// process is a component that runs.
type process struct {
	cmd    *exec.Cmd
	log    string        // the file of its output
	killed atomic.Bool   // it was our will that it ends
	exited chan struct{} // closed when it is gone
}

// run starts a component under the name of its program.
func (b *Bed) run(program string, args ...string) error {
	_, err := b.runAs(program, program, args...)
	return err
}

// runAs starts a program of the bed with its output in <name>.log. The process ends at Stop, or
// with this process, however that dies.
func (b *Bed) runAs(name, program string, args ...string) (*process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.stopped {
		return nil, fmt.Errorf("start %s: the bed is stopped", name)
	}

	output, err := os.Create(filepath.Join(b.logs(), name+".log"))
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer output.Close() // the child has its own

	cmd := exec.Command(b.Binary(program), args...)
	cmd.Dir = b.dir.path
	// Nothing of the caller's environment: no proxy, no KUBECONFIG and no settings file changes
	// what a bed is.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir.path, "TMPDIR=" + b.dir.path}
	cmd.Stdout, cmd.Stderr = output, output

	cmd.SysProcAttr = childAttributes()
	if err := b.launcher.start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}

	p := &process{cmd: cmd, log: output.Name(), exited: make(chan struct{})}

	b.processes = append(b.processes, p)
	go func() {
		defer close(p.exited)

		err := cmd.Wait()
		if !p.killed.Load() {
			b.fail(fmt.Errorf("%s has died (%w); the end of its log:\n%s", name, err, p.tail()))
		}
	}()

	return p, nil
}

// Launch starts a program of the caller's that ends with this process at the latest, however that
// dies. Stop does not end it, and the caller waits for it.
func (b *Bed) Launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttributes()
	return b.launcher.start(cmd)
}

// kill ends the process without a farewell: nothing in a bed is worth the seconds of a graceful
// end.
func (p *process) kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // fails only if it is gone
}

// tail is the end of the log, where the cause is.
func (p *process) tail() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}

	lines := strings.Split(string(bytes.TrimSpace(log)), "\n")

	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// launcher starts processes, all from one operating system thread that lives until close: Linux
// ends the children of a bed when the *thread* that forked them ends, and the Go runtime ends
// threads as it likes.
type launcher struct {
	commands chan *exec.Cmd
	results  chan error
}

func newLauncher() *launcher {
	l := &launcher{commands: make(chan *exec.Cmd), results: make(chan error)}

	go func() {
		runtime.LockOSThread()

		defer runtime.UnlockOSThread()

		for cmd := range l.commands {
			l.results <- cmd.Start()
		}
	}()

	return l
}

// start must not be called concurrently, nor after close.
func (l *launcher) start(cmd *exec.Cmd) error {
	l.commands <- cmd
	return <-l.results
}

func (l *launcher) close() { close(l.commands) }
