// Package bed runs a complete Kubernetes control plane on this machine, for tests and for manual
// use: the real etcd, kube-apiserver, kube-controller-manager and kube-scheduler. kwok simulates
// the nodes, so Deployments become Available. A bed needs no containers, images, privileges or
// network. It listens on loopback only, starts within seconds, and leaves nothing behind when it
// stops. Several beds can run at the same time. Package tools builds the programs from source.
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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/test/bed/tools"
)

// DefaultNodes is the number of simulated nodes unless the options set another.
const DefaultNodes = 2

// StartedFile is a file in the folder in which the programs of a bed run. It exists once the bed has started.
const StartedFile = "started"

// Options configure a bed. The zero value suits most tests.
type Options struct {
	// Nodes is the number of simulated nodes. Zero means DefaultNodes; a negative number means none,
	// for tests that add nodes themselves or need none.
	Nodes int
	// WithoutControllers starts etcd and kube-apiserver only: no Deployment gets pods, no namespace is ever deleted, no
	// owner's object is collected, and no namespace has a ServiceAccount. It requires a bed without simulated nodes.
	WithoutControllers bool
	// WithoutCertManager omits cert-manager's CustomResourceDefinitions. Its controllers never run in
	// a bed.
	WithoutCertManager bool
	// APIServerFlags and ControllerManagerFlags are appended to the flags of kube-apiserver and
	// kube-controller-manager, so they override the bed's own.
	APIServerFlags, ControllerManagerFlags []string
	// CRDs are CustomResourceDefinitions that exist besides those of cert-manager.
	CRDs []*unstructured.Unstructured
	// LowCPU lets the components spend less CPU time: each uses one processor, which spares Go's threads the search for
	// work, and collects garbage less often, which takes up to about a gibibyte of memory each. etcd starts with the
	// data of an earlier bed, and the CRDs of cert-manager have no descriptions. Benchmarks measure components as they
	// are elsewhere.
	LowCPU bool
	// WithoutAudit omits the audit log, for tests that do not call Requests.
	WithoutAudit bool
	// LogDir is a folder for the components' logs and the audit log, which are kept after Stop.
	// Existing logs are overwritten. If it is empty, Stop removes the logs.
	LogDir string
	// Programs are built if they are missing; nil means all that tests use.
	Programs *tools.Set
	// Log receives the progress of builds; nil means standard error.
	Log io.Writer
}

// Bed is a running control plane.
type Bed struct {
	options  Options
	tools    *tools.Set
	dir      *workDir
	data     string // folder with the first data of etcd; empty for none
	ca       *authority
	admin    *rest.Config      // of the user admin
	client   dynamic.Interface // used by the bed itself
	http     *http.Client      // used by the bed itself
	port     *port             // the API server's
	launcher *launcher
	audit    auditReader

	alive context.Context         // canceled, with the cause, when a component dies
	fail  context.CancelCauseFunc // cancels alive

	mu        sync.Mutex // guards the fields below and the kubeconfig files
	processes []*process
	stopped   bool
}

// Start builds the bed's programs if they are missing, and starts a control plane. When it returns,
// nodes are Ready, pods can be created in the default namespace unless there are no controllers, and CRDs are
// Established. ctx limits only the start. The caller must call Stop.
func Start(ctx context.Context, options Options) (*Bed, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}

	if err := options.Programs.Build(ctx, options.Log); err != nil {
		return nil, err
	}

	b := &Bed{options: options, tools: options.Programs, launcher: newLauncher()}

	if options.LowCPU {
		definitions, err := b.definitions()
		if err != nil {
			return nil, err
		}

		if b.data, err = options.snapshot(ctx, definitions); err != nil {
			return nil, err
		}
	}

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

	if o.WithoutControllers && o.Nodes > 0 {
		return o, errors.New("a bed without controllers cannot have nodes")
	}

	if o.Log == nil {
		o.Log = os.Stderr
	}

	if o.Programs == nil {
		set, err := tools.Find()
		if err != nil {
			return o, err
		}

		o.Programs = set
	}

	if o.LogDir == "" {
		return o, nil
	}
	// The components run in another folder, where a relative path would point elsewhere.
	dir, err := filepath.Abs(o.LogDir)
	if err != nil {
		return o, fmt.Errorf("find the folder of the logs: %w", err)
	}

	o.LogDir = dir

	return o, nil
}

func (b *Bed) start(ctx context.Context) error {
	steps := []func(context.Context) error{b.prepare, b.startAPIServer, b.populate, b.startControllers, b.settle}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}

	return os.WriteFile(b.file(StartedFile), nil, 0o600)
}

// Stop kills every process of the bed and removes its folder. It may be called more than once.
func (b *Bed) Stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.stopped {
		return nil
	}

	b.stopped = true
	end(b.processes...)

	b.launcher.close()

	return errors.Join(b.port.release(), b.dir.remove())
}

// Wait returns nil when ctx ends. If a component dies first, it returns an error with the
// component's name and the end of its log.
func (b *Bed) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-b.alive.Done():
		return context.Cause(b.alive)
	}
}

// Dir returns the bed's folder. Callers may put files there that Stop should remove.
func (b *Bed) Dir() string { return b.dir.path }

// Binary returns the path of one of the bed's programs, such as "kubectl", "helm" (v3) or "helm4".
func (b *Bed) Binary(name string) string { return b.tools.Program(name) }

// AuditLog returns the path of the API server's audit log. Requests reads it.
func (b *Bed) AuditLog() string { return filepath.Join(b.logs(), "audit.log") }

func (b *Bed) logs() string {
	if b.options.LogDir != "" {
		return b.options.LogDir
	}

	return b.file("logs")
}

// file returns a path in the bed's folder.
func (b *Bed) file(name string) string { return filepath.Join(b.dir.path, name) }
