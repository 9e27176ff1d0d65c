package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/tools/clientcmd"
)

// manager is a running manager.
type manager struct {
	cmd    *exec.Cmd
	user   string // in the audit log
	log    string // path
	exited chan struct{}
}

// startManager starts the manager with the permissions of a ServiceAccount. It ends with this process.
func (c *check) startManager(ctx context.Context, namespace, account string) (*manager, error) {
	user := serviceaccount.MakeUsername(namespace, account)
	folder := filepath.Join(c.bed.Dir(), c.release.Bundle.Provider.Label+"-manager")

	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}

	kubeconfig, err := c.kubeconfigOf(ctx, folder, namespace, account)
	if err != nil {
		return nil, fmt.Errorf("make a kubeconfig of %s: %w", user, err)
	}

	m := &manager{user: user, log: filepath.Join(folder, "log"), exited: make(chan struct{})}

	log, err := os.Create(m.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the manager has its own

	command := c.options.Manager.Command

	m.cmd = exec.Command(command[0], command[1:]...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.Env = slices.Concat(os.Environ(), []string{"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=" + namespace})

	if err := c.bed.Launch(m.cmd); err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}

	go func() {
		defer close(m.exited)

		_ = m.cmd.Wait() // the log has the reason
	}()

	return m, nil
}

// kubeconfigOf writes the kubeconfig of a ServiceAccount into a folder, and returns its path.
func (c *check) kubeconfigOf(ctx context.Context, folder, namespace, account string) (string, error) {
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	token := &authenticationv1.TokenRequest{}

	if err := c.client.SubResource("token").Create(ctx, object, token); err != nil {
		return "", err
	}

	config, err := clientcmd.LoadFromFile(c.bed.Kubeconfig())
	if err != nil {
		return "", err
	}

	for _, user := range config.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, token.Status.Token
	}

	path := filepath.Join(folder, "kubeconfig")

	return path, clientcmd.WriteToFile(*config, path)
}

// hasExited reports whether the manager has ended.
func (m *manager) hasExited() bool {
	select {
	case <-m.exited:
		return true
	default:
		return false
	}
}

// stop ends the manager.
func (m *manager) stop() {
	_ = m.cmd.Process.Kill() // fails only if it has ended
	<-m.exited
}

// lastLine returns the last line of the manager's log, which usually contains the cause.
func (m *manager) lastLine() string {
	log, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}

	text := strings.TrimSpace(string(log))

	return text[strings.LastIndex(text, "\n")+1:]
}
