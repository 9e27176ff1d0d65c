package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/capstan-project/capstan/chartgen/limit"
)

const (
	// idleTime is how long a child waits for the next request.
	idleTime = 2 * time.Second
	// maxIdle is how many children wait. As many render at the same time; see package limit.
	maxIdle = 2
)

// pool has children that wait for requests. Others are started when they are needed. With a new child for each chart,
// the installation of a small provider would take 0.07 s of CPU time instead of 0.05 s.
type pool struct {
	mu   sync.Mutex
	idle []*process
}

// render returns a child's answer to a request. The error is a *ChartError if the chart is the reason.
func (p *pool) render(ctx context.Context, input []byte) ([]byte, error) {
	if child := p.take(); child != nil {
		output, err := p.renderBy(ctx, child, input)
		if !child.lost {
			return output, err
		}
	}

	child, err := start()
	if err != nil {
		return nil, fmt.Errorf("render a chart: %w", err)
	}

	return p.renderBy(ctx, child, input)
}

func (p *pool) renderBy(ctx context.Context, child *process, input []byte) ([]byte, error) {
	output, more, err := child.render(ctx, input)
	if more {
		p.keep(child)
	}

	return output, err
}

// take returns a child that waits; nil if there is none.
func (p *pool) take() *process {
	p.mu.Lock()
	defer p.mu.Unlock()

	if len(p.idle) == 0 {
		return nil
	}

	child := p.idle[0]
	p.idle = slices.Delete(p.idle, 0, 1)

	child.expiry.Stop()

	return child
}

// keep lets a child wait for the next request, unless enough children do.
func (p *pool) keep(child *process) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if len(p.idle) == maxIdle {
		child.end()
		return
	}

	p.idle = append(p.idle, child)
	child.expiry = time.AfterFunc(idleTime, func() { p.drop(child) })
}

// drop ends a child if it waits.
func (p *pool) drop(child *process) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if i := slices.Index(p.idle, child); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)

		child.end()
	}
}

// process is a child process, which renders charts one after the other.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     io.ReadCloser
	log     *boundedBuffer
	expiry  *time.Timer // of the time in which it waits
	// lost reports that it has ended without an answer. If it was reused, the chart may not be the reason: the system may
	// have ended it while it waited.
	lost bool
}

// start starts a child process.
func start() (*process, error) {
	executable, err := executable()
	if err != nil {
		return nil, err
	}

	p := &process{command: exec.Command(executable), log: &boundedBuffer{limit: 64 << 10}} //nolint:gosec // this program
	p.command.Args = []string{childName}
	// The child collects garbage from when it has started: hardly any of what packages allocate while they are
	// initialized is garbage, and a quarter of the time until then would be spent on looking for it.
	p.command.Env = []string{"GOTRACEBACK=none", "GOMAXPROCS=2", "GOGC=off"}
	p.command.Dir = "/"
	p.command.Stderr = p.log

	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}

	if p.out, err = p.command.StdoutPipe(); err != nil {
		return nil, err
	}

	return p, p.command.Start()
}

// render returns the child's answer to a request, and whether the child takes another one; otherwise it has ended.
// The error is a *ChartError if the chart is the reason.
func (p *process) render(ctx context.Context, input []byte) (output []byte, more bool, err error) {
	limited, cancel := context.WithTimeout(ctx, wallTime)
	defer cancel()

	notKilled := context.AfterFunc(limited, func() { _ = p.command.Process.Kill() })

	output, more, err = p.exchange(input)
	if notKilled() && more {
		return output, true, nil
	}

	p.end()

	switch {
	case ctx.Err() != nil:
		return nil, false, fmt.Errorf("render a chart: %w", ctx.Err())
	case errors.Is(err, errExceeded):
		return nil, false, tooLarge()
	case err == nil:
		return output, false, nil
	}

	used := p.command.ProcessState.UserTime() + p.command.ProcessState.SystemTime()
	overtime := limited.Err() != nil || used >= cpuTime-time.Second
	p.lost = !overtime // nothing but the chart takes that time

	return nil, false, &ChartError{reason(overtime, string(p.log.content))}
}

// reason returns why a child ended without an answer. Go's runtime fails in many ways when it gets no memory.
func reason(overtime bool, log string) string {
	switch {
	case overtime:
		return fmt.Sprintf("its templates take more than %v of processor time, or %v; simplify them", cpuTime, wallTime)
	case strings.Contains(log, "stack overflow"):
		return "its templates call each other without end; simplify them"
	case strings.HasPrefix(log, "panic: "):
		return "its templates make Helm fail; simplify them"
	}

	return fmt.Sprintf("its templates take more than %d MiB of memory; simplify them", limit.RenderMemory>>20)
}

// exchange sends a request and reads the answer.
func (p *process) exchange(input []byte) (output []byte, more bool, err error) {
	if err := writeMessage(p.in, input, true); err != nil {
		return nil, false, err
	}

	return readMessage(p.out, maxAnswer)
}

// end ends the process, if it has not ended by itself.
func (p *process) end() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait() // closes the pipes
}

// header precedes what processes send each other.
type header struct {
	Size uint32 // in bytes
	More bool   // reports that the sender expects another message
}

func writeMessage(w io.Writer, message []byte, more bool) error {
	if err := binary.Write(w, binary.BigEndian, header{Size: uint32(len(message)), More: more}); err != nil {
		return err
	}

	_, err := w.Write(message)

	return err
}

// readMessage returns a message, and whether its sender expects another one. The error is errExceeded if the message is
// larger than a limit in bytes.
func readMessage(r io.Reader, maxSize uint32) (message []byte, more bool, err error) {
	var h header
	if err := binary.Read(r, binary.BigEndian, &h); err != nil {
		return nil, false, err
	}

	if h.Size > maxSize {
		return nil, false, errExceeded
	}

	message = make([]byte, h.Size)
	_, err = io.ReadFull(r, message)

	return message, h.More, err
}

// executable returns the path of this program, even if its file was replaced.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}

	return os.Executable()
}

var errExceeded = errors.New("too much output")

// boundedBuffer keeps what is written up to a limit, and drops the rest.
type boundedBuffer struct {
	content []byte
	limit   int
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	rest := min(len(p), b.limit-len(b.content))
	b.content = append(b.content, p[:rest]...)

	return len(p), nil
}
