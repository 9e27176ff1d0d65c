package bed

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
)

// process is a running component.
type process struct {
	cmd    *exec.Cmd
	log    string        // path of the file with its output
	killed atomic.Bool   // whether the bed ended it
	exited chan struct{} // closed when it has ended
}

// run starts a component, with the name of its program.
func (b *Bed) run(program string, args ...string) error {
	_, err := b.runAs(program, program, args...)
	return err
}

// runAs starts one of the bed's programs, with its output in <name>.log. The process is killed by
// Stop, or when this process dies for any reason.
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
	// The caller's environment is not passed on, so that no proxy, KUBECONFIG or settings file affects
	// the bed.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir.path, "TMPDIR=" + b.dir.path}
	if b.options.LowCPU {
		cmd.Env = append(cmd.Env, "GOMAXPROCS=1", "GOGC=400", "GOMEMLIMIT=1GiB")
	}

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

// Command returns a command that runs one of the bed's programs as the administrator.
//
// Its home folder is in the bed's folder: kubectl and helm keep what an API server serves in their
// home for hours, by address, and another bed may have had the same port.
func (b *Bed) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.Binary(program), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.Kubeconfig(), "HOME="+b.file("home"))

	return cmd
}

// Launch starts a program of the caller. It is killed when this process dies for any reason. Stop
// does not end it; the caller must wait for it.
func (b *Bed) Launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttributes()
	return b.launcher.start(cmd)
}

// kill ends the process with SIGKILL: a graceful shutdown takes seconds and a bed has nothing to
// save.
func (p *process) kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // fails only if the process has ended
}

// end kills processes, and waits until they have ended.
func end(processes ...*process) {
	for _, p := range processes {
		p.kill()
	}

	for _, p := range processes {
		<-p.exited
	}
}

// tail returns the end of the log, which usually contains the cause.
func (p *process) tail() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}

	lines := strings.Split(string(bytes.TrimSpace(log)), "\n")

	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// launcher starts processes from a single operating system thread that lives until close. Linux
// kills the children of a bed when the *thread* that forked them ends, and the Go runtime may end
// threads at any time.
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

// start may be called concurrently, because the next command is taken only once the result of the last one has been
// received. It must not be called after close.
func (l *launcher) start(cmd *exec.Cmd) error {
	l.commands <- cmd
	return <-l.results
}

func (l *launcher) close() { close(l.commands) }
