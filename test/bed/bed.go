// Package bed runs a whole Kubernetes control plane on this machine, for tests and by hand: the
// real etcd, kube-apiserver, kube-controller-manager and kube-scheduler, with nodes that kwok
// simulates, so that Deployments really become Available. It needs no container, no image, no
// privilege and no network, listens on loopback only, is up within seconds and leaves nothing
// behind. Several beds run side by side. The programs are built from source by package tools.
package bed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/test/bed/tools"
)

// DefaultNodes is how many nodes a bed has unless its options say otherwise.
const DefaultNodes = 2

// Options of a bed. The zero value is what most tests want.
type Options struct {
	// Nodes is the number of simulated nodes; 0 means DefaultNodes, a negative number none, for
	// tests that bring a node of their own.
	Nodes int
	// WithoutCertManager leaves out the CustomResourceDefinitions of cert-manager. Its controllers
	// never run here.
	WithoutCertManager bool
	// APIServerFlags are appended to the flags of kube-apiserver, so they win over the bed's own.
	APIServerFlags []string
	// LogDir is a folder for the logs of the components and the audit log, which stay after Stop.
	// Logs of an earlier bed there are overwritten. If it is empty, the logs go when the bed goes.
	LogDir string
	// Log receives progress while programs are being built; nil means standard error.
	Log io.Writer
}

// Bed is a running control plane.
type Bed struct {
	options  Options
	tools    *tools.Set
	dir      *workDir
	ca       *authority
	admin    *rest.Config      // of the user whom callers get unless they name one
	client   dynamic.Interface // of the bed itself
	http     *http.Client      // of the bed itself
	port     *port             // of the API server
	launcher *launcher

	alive context.Context         // ends, with the cause, when a component dies
	fail  context.CancelCauseFunc // ends alive

	mu        sync.Mutex // guards what follows, and the kubeconfig files
	processes []*process
	stopped   bool
}

// Start builds the bed's programs if they are missing and brings up a control plane: when it
// returns, nodes are Ready, the default namespace takes pods and the CRDs are Established. ctx
// bounds the start only. The caller owes a Stop.
func Start(ctx context.Context, options Options) (*Bed, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}

	set, err := tools.Find()
	if err != nil {
		return nil, err
	}

	if err := set.Build(ctx, options.Log); err != nil {
		return nil, err
	}

	b := &Bed{options: options, tools: set, launcher: newLauncher()}

	b.alive, b.fail = context.WithCancelCause(context.Background())
	if err := b.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the test bed: %w", err), b.Stop())
	}

	return b, nil
}

func (o Options) complete() (Options, error) {
	if o.Nodes == 0 {
		o.Nodes = DefaultNodes
	}

	if o.Log == nil {
		o.Log = os.Stderr
	}

	if o.LogDir == "" {
		return o, nil
	}
	// The components run in another folder, where a relative path means another one.
	dir, err := filepath.Abs(o.LogDir)
	if err != nil {
		return o, fmt.Errorf("find the folder of the logs: %w", err)
	}

	o.LogDir = dir

	return o, nil
}

func (b *Bed) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{b.prepare, b.startAPIServer, b.populate, b.startControllers, b.settle} {
		if err := step(ctx); err != nil {
			return err
		}
	}

	return nil
}

// Stop ends every process of the bed and removes its folder. It may be called more than once.
func (b *Bed) Stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.stopped {
		return nil
	}

	b.stopped = true
	for _, p := range b.processes {
		p.kill()
	}

	for _, p := range b.processes {
		<-p.exited
	}

	b.launcher.close()

	return errors.Join(b.port.release(), b.dir.remove())
}

// Wait returns nil when ctx ends, or as soon as a component has died an error that names it and
// shows the end of its log.
func (b *Bed) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-b.alive.Done():
		return context.Cause(b.alive)
	}
}

// Dir is the bed's folder, where callers may put files that go with the bed.
func (b *Bed) Dir() string { return b.dir.path }

// Binary is the path of a program of the bed, such as "kubectl", "helm" (v3) or "helm4".
func (b *Bed) Binary(name string) string { return b.tools.Program(name) }

// AuditLog is the path of the API server's audit log; see Requests.
func (b *Bed) AuditLog() string { return filepath.Join(b.logs(), "audit.log") }

func (b *Bed) logs() string {
	if b.options.LogDir != "" {
		return b.options.LogDir
	}

	return b.file("logs")
}

// file is a path in the bed's folder.
func (b *Bed) file(name string) string { return filepath.Join(b.dir.path, name) }
