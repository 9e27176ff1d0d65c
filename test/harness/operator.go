package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/capstan-project/capstan/test/bed"
)

// OperatorUser is the operator's user name in the bed's audit log, and OperatorNamespace its namespace, which every
// cluster has.
const (
	OperatorUser      = "capstan-operator"
	OperatorNamespace = "kube-system"
)

// Operator is a running operator process.
type Operator struct {
	cmd   *exec.Cmd
	log   *os.File
	ended chan struct{} // closed when the process has ended; err is set then
	err   error
}

// StartOperator runs the operator against the bed as OperatorUser, who may do everything.
func StartOperator(b *bed.Bed, program, logFile string, flags ...string) (*Operator, error) {
	kubeconfig, err := b.KubeconfigFor(OperatorUser)
	if err != nil {
		return nil, err
	}

	return StartOperatorAs(b, kubeconfig, []string{program}, logFile, flags...)
}

// StartOperatorAs is like StartOperator with another kubeconfig file, and with a command that ends
// with the program's path, such as one that runs it in another network namespace.
func StartOperatorAs(
	b *bed.Bed,
	kubeconfig string,
	command []string,
	logFile string,
	flags ...string,
) (*Operator, error) {
	args := slices.Concat(command[1:], []string{"--metrics-bind-address=0", "--health-probe-bind-address=0"},
		testFlags(flags), flags)

	return launch(b, exec.Command(command[0], args...), kubeconfig, logFile)
}

// launch runs an operator with a kubeconfig file, and appends its output to a file.
func launch(b *bed.Bed, cmd *exec.Cmd, kubeconfig, logFile string) (*Operator, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}

	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdout, cmd.Stderr = log, log

	if err := b.Launch(cmd); err != nil {
		return nil, errors.Join(err, log.Close())
	}

	o := &Operator{cmd: cmd, log: log, ended: make(chan struct{})}
	go func() {
		defer close(o.ended)

		o.err = o.cmd.Wait()
	}()

	return o, nil
}

// testFlags returns flags that name the operator's namespace, allow servers on this machine, and look at remote
// clusters as often as possible, unless the given flags decide that.
func testFlags(flags []string) []string {
	var all []string

	for _, flag := range [][2]string{
		{"--leader-election-namespace", OperatorNamespace},
		{"--allow-http-sources", "true"},
		{"--allowed-source-addresses", "127.0.0.0/8"},
		{"--remote-interval", "10s"},
	} {
		decided := slices.ContainsFunc(flags, func(given string) bool {
			value, found := strings.CutPrefix(given, flag[0])
			return found && value != "="
		})
		if !decided {
			all = append(all, flag[0]+"="+flag[1])
		}
	}

	return all
}

// Stop ends the operator with SIGTERM, as a node does that is being drained, and waits.
func (o *Operator) Stop() error { return o.end(syscall.SIGTERM) }

// Kill ends the operator with SIGKILL, as a crash does, and waits.
func (o *Operator) Kill() error { return o.end(syscall.SIGKILL) }

// Freeze stops the operator with SIGSTOP, as a suspended virtual machine or container does, until Thaw.
func (o *Operator) Freeze() error { return o.signal(syscall.SIGSTOP) }

// Thaw continues the operator after Freeze.
func (o *Operator) Thaw() error { return o.signal(syscall.SIGCONT) }

func (o *Operator) signal(signal syscall.Signal) error {
	if err := o.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}

	return nil
}

func (o *Operator) end(signal syscall.Signal) error {
	if ended, _ := o.Exited(); ended {
		return nil
	}

	if err := o.signal(signal); err != nil {
		return err
	}

	<-o.ended

	return o.log.Close()
}

// Exited reports whether the operator has ended by itself, and returns its error.
func (o *Operator) Exited() (bool, error) {
	select {
	case <-o.ended:
		return true, o.err
	default:
		return false, nil
	}
}

// PeakMemory returns the largest resident memory of the operator so far, in bytes; 0 where the
// system does not provide it.
func (o *Operator) PeakMemory() int64 { return o.memory("VmHWM") }

// ResetPeakMemory makes PeakMemory start again from the present memory. It does nothing where the system does not
// provide that.
func (o *Operator) ResetPeakMemory() {
	const resetPeak = "5" // proc(5)

	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", o.cmd.Process.Pid), []byte(resetPeak), 0o600)
}

// Memory returns the resident memory of the operator, in bytes; 0 where the system does not provide
// it.
func (o *Operator) Memory() int64 { return o.memory("VmRSS") }

// CPU returns the processor time that the operator has used; 0 where the system does not provide it.
func (o *Operator) CPU() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", o.cmd.Process.Pid))
	if err != nil {
		return 0
	}

	_, fields, _ := strings.Cut(string(stat), ") ") // the program's name may contain spaces
	columns := strings.Fields(fields)

	const userTime, systemTime = 11, 12 // fields 14 and 15 of proc(5)
	if len(columns) <= systemTime {
		return 0
	}

	var total int64

	for _, column := range columns[userTime : systemTime+1] {
		var ticks int64

		_, _ = fmt.Sscan(column, &ticks)
		total += ticks
	}

	const tick = 10 * time.Millisecond // on every platform that Go supports

	return time.Duration(total) * tick
}

func (o *Operator) memory(field string) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", o.cmd.Process.Pid))
	if err != nil {
		return 0
	}

	for line := range strings.Lines(string(status)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, field+": %d kB", &kib); n == 1 {
			return kib << 10
		}
	}

	return 0
}
