package attack

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// remoteAttempts use kubeconfigs, which the tenant writes, and API servers of the tenant.
var remoteAttempts = []attempt{
	{"A kubeconfig that runs a shell in the operator", func(a *arena) string {
		return a.executing("/bin/sh", "-c", `touch "$0"`, a.proof())
	}},
	{"A kubeconfig with paths of certificate, key and authority", func(a *arena) string {
		file := a.secretFile()

		return a.attemptedThere(a.kubeconfig(a.server(http.NotFoundHandler()), func(c *clientcmdapi.Config) {
			c.Clusters["x"].CertificateAuthorityData, c.Clusters["x"].CertificateAuthority = nil, file
			c.AuthInfos["x"] = &clientcmdapi.AuthInfo{ClientCertificate: file, ClientKey: file}
		}))
	}},
	{"A kubeconfig for the operator's own API server without credentials", func(a *arena) string {
		a.neverBound()

		return a.attemptedThere(a.kubeconfig(a.ownAPIServer(), func(c *clientcmdapi.Config) {
			c.Clusters["x"].CertificateAuthorityData, c.Clusters["x"].TLSServerName = a.bed.Config().CAData, "localhost"
			c.AuthInfos["x"] = &clientcmdapi.AuthInfo{}
		}))
	}},
	{"A kubeconfig that impersonates system:masters at the operator's own API server", func(a *arena) string {
		a.neverBound()

		config := a.remoteConfigOf(&corev1.ServiceAccount{ObjectMeta: named(tenant, "installer")})

		for _, user := range config.AuthInfos {
			user.Impersonate, user.ImpersonateGroups = "system:admin", []string{"system:masters"}
		}

		return a.attemptedThere(a.secretWith(config))
	}},
	{"A kubeconfig with a proxy that looks into the connection, and the operator's own API server", func(a *arena) string {
		a.neverReceived("the operator's token", a.operatorToken())
		a.neverBound()

		return a.attemptedThere(a.kubeconfig(a.ownAPIServer(), func(c *clientcmdapi.Config) {
			c.Clusters["x"].ProxyURL = a.proxy()
			c.AuthInfos["x"] = &clientcmdapi.AuthInfo{}
		}))
	}},
	{"A kubeconfig for an inner web server", func(a *arena) string {
		return a.attemptedThere(a.kubeconfig("http://"+a.inner().address, nil))
	}},
	{"A kubeconfig for a server that redirects to an inner one", func(a *arena) string {
		target := "http://" + a.inner().address

		return a.attemptedThere(a.kubeconfig(a.server(http.RedirectHandler(target, http.StatusFound)), nil))
	}},
	{"An API server whose errors have line breaks, a forged line of the log and codes for the terminal",
		func(a *arena) string {
			a.neverForged()

			return a.attemptedThere(a.kubeconfig(a.server(http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/plain")
					w.WriteHeader(http.StatusInternalServerError)
					_, _ = io.WriteString(w, forgedLines(a.name))
				})), nil))
		}},
}

// executing returns the operator's answer to a kubeconfig that runs a program.
func (a *arena) executing(program string, args ...string) string {
	return a.attemptedThere(a.kubeconfig(a.server(http.NotFoundHandler()), func(c *clientcmdapi.Config) {
		c.AuthInfos["x"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: program, Args: args,
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}}
	}))
}

// proof returns the path of a file that must not come into being.
func (a *arena) proof() string {
	file := filepath.Join(a.TempDir(), "proof")
	a.never("the program has run", func(context.Context) bool {
		_, err := os.Stat(file)
		return err == nil
	})

	return file
}

// secretFile returns the path of a file whose content must not reach a hostile server or the tenant.
func (a *arena) secretFile() string {
	text := "content-of-a-file-" + a.name + "-end"
	file := filepath.Join(a.TempDir(), "token")
	a.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	a.neverReceived("the content of a file of the operator", text)
	a.neverKnown(text)

	return file
}

// operatorToken returns the token of the operator's ServiceAccount.
func (a *arena) operatorToken() string {
	config, err := clientcmd.BuildConfigFromFlags("", a.kubeconfigFile)
	a.Expect(err).NotTo(HaveOccurred())

	return config.BearerToken
}

// ownAPIServer returns an address of the operator's own API server that is not a loopback address. Its certificate is
// for localhost.
func (a *arena) ownAPIServer() string {
	a.Helper()

	listener, err := net.Listen("tcp", a.host+":0")
	a.Expect(err).NotTo(HaveOccurred())
	a.Cleanup(func() { _ = listener.Close() })

	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}

			to, err := net.Dial("tcp", strings.TrimPrefix(a.bed.Config().Host, "https://"))
			if err != nil {
				_ = from.Close()
				continue
			}

			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
		}
	}()

	return "https://" + listener.Addr().String()
}

// remoteConfigOf returns the kubeconfig of a ServiceAccount for ownAPIServer.
func (a *arena) remoteConfigOf(account *corev1.ServiceAccount) *clientcmdapi.Config {
	a.Helper()

	config, err := clientcmd.LoadFromFile(a.kubeconfigOf(a.T, account))
	a.Expect(err).NotTo(HaveOccurred())

	for _, cluster := range config.Clusters {
		cluster.Server, cluster.TLSServerName = a.ownAPIServer(), "localhost"
	}

	return config
}

// kubeconfig returns a Secret with a kubeconfig for a server that has the attacker's certificate.
func (a *arena) kubeconfig(server string, change func(*clientcmdapi.Config)) *corev1.Secret {
	config := clientcmdapi.NewConfig()
	config.Clusters["x"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: a.identity.ca}
	config.AuthInfos["x"] = &clientcmdapi.AuthInfo{Token: "token-of-" + a.name}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "x", AuthInfo: "x"}
	config.CurrentContext = "x"

	if change != nil {
		change(config)
	}

	return a.secretWith(config)
}

func (a *arena) secretWith(config *clientcmdapi.Config) *corev1.Secret {
	text, err := clientcmd.Write(*config)
	a.Expect(err).NotTo(HaveOccurred())

	return &corev1.Secret{ObjectMeta: named("", "kc"), Data: map[string][]byte{"value": text}}
}

// there creates a CoreProvider for the cluster of a kubeconfig, in a namespace of its own.
func (a *arena) there(kubeconfig *corev1.Secret) (string, *v1alpha2.CoreProvider) {
	a.Helper()

	room := a.room()
	s := small{room, v1alpha2.CoreProviderName, "v1.0.0", a.adminBinding()}
	p := &v1alpha2.CoreProvider{ObjectMeta: named(room, s.name)}
	p.Spec = s.resource().Spec
	p.Spec.KubeConfig = &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
		LocalSecretReference: v1alpha2.LocalSecretReference{Name: kubeconfig.Name}, Key: "value",
	}}

	kubeconfig.Namespace = room
	a.create(kubeconfig, s.configMap(), p)

	return room, p
}

// attemptedThere returns the operator's answer to a provider for the cluster of a kubeconfig.
func (a *arena) attemptedThere(kubeconfig *corev1.Secret) string {
	a.Helper()
	_, p := a.there(kubeconfig)

	return a.outcome(p)
}

// forgedLines is a text that would be several lines in a log or a terminal.
func forgedLines(name string) string {
	return fmt.Sprintf("\x1b[2J\x1b[1;31mred\r\n{\"level\":\"info\",\"msg\":\"forged-%s\"}\n", name)
}
