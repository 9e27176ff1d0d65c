package bed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/crypto/bcrypt"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/capstan-project/capstan/test/bed/tools"
)

// Registry is a real OCI registry without a control plane. It keeps its content when it is stopped
// and started again.
type Registry struct {
	// Address is its host:port, which stays the same when the registry is started again.
	Address string
	// CA is the PEM certificate of the authority that signed the registry's; nil for plain HTTP.
	CA []byte

	dir     string
	program string
	http    string // settings of the configuration file
	cmd     *exec.Cmd
	exited  chan struct{}

	inProcess *inProcess // instead of the program
}

// RegistryOptions configure a registry.
type RegistryOptions struct {
	// Implementation is Distribution if it is empty.
	Implementation Implementation
	// Dir is the storage folder. It must exist, and the caller must remove it.
	Dir string
	// TLS makes the registry use TLS, with a certificate for localhost and 127.0.0.1 that its own
	// authority has signed.
	TLS bool
	// User and Password are required by the registry, if they are set.
	User, Password string
	// Listen is the host:port to listen on; empty means a free port of the loopback address.
	Listen string
}

// RunRegistry starts a registry. The caller must call Stop.
func RunRegistry(ctx context.Context, o RegistryOptions) (*Registry, error) {
	set, err := tools.Find()
	if err != nil {
		return nil, err
	}

	if err := set.Build(ctx, os.Stderr); err != nil {
		return nil, err
	}

	r := &Registry{Address: o.Listen, dir: o.Dir, program: set.Program(tools.Registry)}
	if r.Address == "" {
		r.Address = "127.0.0.1:0"
	}

	if o.Implementation == GoContainerRegistry {
		r.inProcess = newInProcess(o)
	}

	if err := errors.Join(r.withTLS(o), r.withUser(o)); err != nil {
		return nil, fmt.Errorf("start a registry: %w", err)
	}

	return r, r.Start(ctx)
}

func (r *Registry) withTLS(o RegistryOptions) error {
	if !o.TLS {
		return nil
	}

	ca, err := newAuthority()
	if err != nil {
		return err
	}

	address := net.IPv4(127, 0, 0, 1)
	if host, _, err := net.SplitHostPort(o.Listen); err == nil {
		address = net.ParseIP(host)
	}

	pair, err := ca.server([]string{"localhost"}, address)
	if err != nil {
		return err
	}

	r.CA = ca.bundle()
	if r.inProcess != nil {
		return r.inProcess.useTLS(pair)
	}

	certificate, key := filepath.Join(r.dir, "tls.crt"), filepath.Join(r.dir, "tls.key")
	r.http += fmt.Sprintf("  tls: {certificate: %q, key: %q}\n", certificate, key)

	return errors.Join(os.WriteFile(certificate, pair.certificate, 0o600), os.WriteFile(key, pair.key, 0o600))
}

func (r *Registry) withUser(o RegistryOptions) error {
	if o.User == "" || r.inProcess != nil {
		return nil
	}

	hash, err := bcrypt.GenerateFromPassword([]byte(o.Password), bcrypt.MinCost)
	if err != nil {
		return err
	}

	file := filepath.Join(r.dir, "htpasswd")
	r.http += fmt.Sprintf("auth:\n  htpasswd: {realm: bed, path: %q}\n", file)

	return os.WriteFile(file, fmt.Appendf(nil, "%s:%s\n", o.User, hash), 0o600)
}

// Start runs the registry until Stop, or until this process dies for any reason.
func (r *Registry) Start(ctx context.Context) error {
	if r.inProcess != nil {
		return r.serve()
	}

	config, logFile := filepath.Join(r.dir, "config.yaml"), filepath.Join(r.dir, "registry.log")
	if err := os.WriteFile(
		config,
		fmt.Appendf(nil, registryConfig, filepath.Join(r.dir, "data"), r.Address, r.http),
		0o600,
	); err != nil {
		return fmt.Errorf("start a registry: %w", err)
	}

	output, err := os.Create(logFile)
	if err != nil {
		return fmt.Errorf("start a registry: %w", err)
	}
	defer output.Close() // the child has its own

	r.cmd = exec.Command(r.program, "serve", config)
	r.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "OTEL_TRACES_EXPORTER=none"}
	r.cmd.Stdout, r.cmd.Stderr = output, output

	r.cmd.SysProcAttr = childAttributes()
	if err := r.launch(); err != nil {
		return fmt.Errorf("start a registry: %w", err)
	}

	return r.listening(ctx, logFile)
}

// launch starts the process on a thread that lives as long as the process; launcher explains why.
func (r *Registry) launch() error {
	started, exited := make(chan error), make(chan struct{})

	go func() {
		runtime.LockOSThread()

		defer runtime.UnlockOSThread()
		defer close(exited)

		err := r.cmd.Start()
		started <- err

		if err == nil {
			_ = r.cmd.Wait() // an error means that it was killed
		}
	}()

	r.exited = exited

	return <-started
}

func (r *Registry) listening(ctx context.Context, logFile string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	for {
		address, err := loggedAddress(logFile)
		if err == nil {
			r.Address = address
			return nil
		}

		select {
		case <-r.exited:
			log, _ := os.ReadFile(logFile)
			return fmt.Errorf("the registry has died; the end of its log:\n%s", bytes.TrimSpace(log[max(0, len(log)-2000):]))
		case <-ctx.Done():
			return fmt.Errorf("the registry does not listen (%w): %w", ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop ends the registry and keeps its content.
func (r *Registry) Stop() {
	if r.inProcess != nil {
		r.inProcess.stop()
	}

	if r.cmd != nil && r.cmd.Process != nil {
		_ = r.cmd.Process.Kill() // fails only if the process has ended
		<-r.exited
	}
}

// Login returns the credentials of a user of a registry, given as host[:port].
func Login(registry, username, password string) auth.CredentialFunc {
	return auth.StaticCredential(registry, auth.Credential{Username: username, Password: password})
}
