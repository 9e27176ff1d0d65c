package bed

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/test/bed/tools"
)

func (b *Bed) url() string { return fmt.Sprintf("https://127.0.0.1:%d", b.port.number) }

// prepare creates everything that the components read when they start: folder, port, keys,
// certificates, kubeconfigs and audit policy.
func (b *Bed) prepare(ctx context.Context) (err error) {
	if b.dir, err = newWorkDir(ctx); err != nil {
		return err
	}

	if err := os.MkdirAll(b.logs(), 0o755); err != nil {
		return fmt.Errorf("make the folder of the logs: %w", err)
	}
	// The API server would append to the log of an earlier bed.
	if err := os.WriteFile(b.AuditLog(), nil, 0o600); err != nil {
		return fmt.Errorf("make the audit log: %w", err)
	}

	if b.data != "" {
		if err := os.CopyFS(b.file(etcdFolder), os.DirFS(b.data)); err != nil {
			return fmt.Errorf("copy the data of etcd: %w", err)
		}
	}

	if b.port, err = reservePort(); err != nil {
		return err
	}

	if err := b.writeKeys(); err != nil {
		return err
	}

	if b.admin, err = b.ConfigFor(adminUser); err != nil {
		return err
	}

	own, err := b.ConfigFor(ownUser)
	if err != nil {
		return err
	}

	if b.client, err = dynamic.NewForConfig(own); err != nil {
		return fmt.Errorf("make the bed's own client: %w", err)
	}

	if b.http, err = rest.HTTPClientFor(own); err != nil {
		return fmt.Errorf("make the bed's own client: %w", err)
	}

	for _, user := range []string{
		adminUser,
		userOf(tools.ControllerManager),
		userOf(tools.Scheduler),
		userOf(tools.Kwok),
	} {
		if _, err := b.KubeconfigFor(user); err != nil {
			return err
		}
	}

	return nil
}

// userOf returns the user name of a component of the control plane.
func userOf(component string) string { return "system:" + component }

func (b *Bed) writeKeys() (err error) {
	if b.ca, err = newAuthority(); err != nil {
		return err
	}

	server, err := b.ca.server(
		[]string{"localhost", "kubernetes.default.svc"},
		net.IPv4(127, 0, 0, 1),
		firstServiceAddress,
	)
	if err != nil {
		return err
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of service accounts: %w", err)
	}

	serviceAccounts, err := encodeKey(key)
	if err != nil {
		return fmt.Errorf("make the key of service accounts: %w", err)
	}

	files := map[string][]byte{
		caFile:              b.ca.bundle(),
		serverCertFile:      server.certificate,
		serverKeyFile:       server.key,
		serviceAccountsFile: serviceAccounts,
		auditPolicyFile:     []byte(auditPolicy),
	}
	for name, content := range files {
		if err := os.WriteFile(b.file(name), content, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}

	return nil
}

// startAPIServer returns when the API server accepts requests. That is about a second before it
// reports that it is ready.
func (b *Bed) startAPIServer(ctx context.Context) error {
	if err := b.run(tools.Etcd, b.etcdFlags()...); err != nil {
		return err
	}
	// The API server connects to etcd once at its start, and then only a second later.
	if err := b.poll(ctx, "etcd listens", func(context.Context) error {
		connection, err := net.Dial("unix", b.file(etcdSocket))
		if err != nil {
			return err
		}

		return connection.Close()
	}); err != nil {
		return err
	}

	if err := b.run(tools.APIServer, b.apiServerFlags()...); err != nil {
		return err
	}

	return b.poll(ctx, "kube-apiserver serves", func(ctx context.Context) error {
		_, err := b.client.Resource(nodes).List(ctx, metav1.ListOptions{})
		return err
	})
}

// stages extend the stages of kwok's module: they simulate failures of images with names such as
// never-pulled.
//
//go:embed stages.yaml
var stages []byte

const stagesFile = "stages.yaml"

// startControllers starts the components that act on objects. kwok would simulate every node, so it
// runs only if there are simulated ones. kube-controller-manager comes last: it checks once whether
// the API server is ready, and then only a second later.
func (b *Bed) startControllers(ctx context.Context) error {
	if b.options.WithoutControllers {
		return b.waitReady(ctx)
	}

	if err := os.WriteFile(b.file(stagesFile), stages, 0o600); err != nil {
		return err
	}

	if b.options.Nodes > 0 {
		if err := b.run(tools.Kwok, b.kwokFlags()...); err != nil {
			return err
		}
	}

	if err := b.run(tools.Scheduler, b.schedulerFlags()...); err != nil {
		return err
	}

	if err := b.waitReady(ctx); err != nil {
		return err
	}

	return b.run(tools.ControllerManager, b.controllerManagerFlags()...)
}

func (b *Bed) waitReady(ctx context.Context) error {
	return b.poll(ctx, "kube-apiserver is ready", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url()+"/readyz", nil)
		if err != nil {
			return err
		}

		response, err := b.http.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()

		if response.StatusCode != http.StatusOK {
			checks, err := io.ReadAll(response.Body)
			return errors.Join(errors.New(string(checks)), err)
		}

		return nil
	})
}

// poll calls done until it returns nil. It gives up when a component dies, when ctx ends, or after
// three minutes, and returns the last error of done.
func (b *Bed) poll(ctx context.Context, what string, done func(context.Context) error) error {
	const every, limit = 100 * time.Millisecond, 3 * time.Minute

	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	for {
		err := done(ctx)
		if err == nil {
			return nil
		}

		select {
		case <-b.alive.Done():
			return context.Cause(b.alive)
		case <-ctx.Done():
			return fmt.Errorf("gave up waiting until %s (%w): %w; if this machine is busy, try again; the logs stay with "+
				"Options.LogDir, or bed up -logs", what, ctx.Err(), err)
		case <-time.After(every):
		}
	}
}
