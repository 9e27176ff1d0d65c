package clusters

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// kubeConfigWith returns a kubeconfig with fields of the cluster and of the user.
func kubeConfigWith(cluster, user string) string {
	return `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {` + cluster + `}}]
users: [{name: u, user: {` + user + `}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
}

const (
	server = "server: https://there.example.com"
	token  = "token: hunter2"
)

func TestParseKubeConfig(t *testing.T) {
	const notAllowed = "exec and auth-provider are not allowed; use a token or a client certificate"

	for name, test := range map[string]struct {
		kubeConfig string
		// refused is part of the error; empty if the kubeconfig is allowed.
		refused string
	}{
		"a server and a token":  {kubeConfigWith(server, token), ""},
		"a proxy":               {kubeConfigWith(server+", proxy-url: socks5://proxy.example.com:1080", token), ""},
		"a user to impersonate": {kubeConfigWith(server, token+", as: alice"), ""},
		"plain HTTP":            {kubeConfigWith("server: http://there.example.com", token), ""},

		"exec": {kubeConfigWith(server,
			"exec: {apiVersion: client.authentication.k8s.io/v1, command: hunter2, interactiveMode: Never}"), notAllowed},
		"an auth provider": {kubeConfigWith(server, "auth-provider: {name: oidc}"), notAllowed},

		"a certificate authority's path": {kubeConfigWith(server+", certificate-authority: /hunter2", token),
			"only certificate-authority-data is supported"},
		"a certificate's path": {kubeConfigWith(server, "client-certificate: /hunter2"),
			"only client-certificate-data is supported"},
		"a key's path":   {kubeConfigWith(server, "client-key: /hunter2"), "only client-key-data is supported"},
		"a token's path": {kubeConfigWith(server, "tokenFile: /hunter2"), "only an inline token is supported"},

		"no server": {kubeConfigWith("", token), "it is not a usable kubeconfig"},
		"credentials in the server": {kubeConfigWith("server: https://a:hunter2@there.example.com", token),
			"server must be a URL without credentials; move them to the user"},
		"a proxy that is a file": {kubeConfigWith(server+", proxy-url: file:///hunter2", token),
			"it is not a usable kubeconfig"},
		"no context": {strings.Replace(kubeConfigWith(server, token), "current-context: x", "", 1),
			"it is not a usable kubeconfig"},
		"another kind": {"hunter2", "it is not a usable kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			config, err := parseKubeConfig([]byte(test.kubeConfig))
			if test.refused == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(config.Host).To(HaveSuffix("there.example.com"))
				g.Expect(config.Timeout).To(Equal(30 * time.Second))

				return
			}

			g.Expect(err).To(MatchError(ContainSubstring(test.refused)))
			g.Expect(err).NotTo(MatchError(ContainSubstring("hunter2")), "a value of the kubeconfig")
		})
	}
}

func TestKubeConfigDecides(t *testing.T) {
	g := NewWithT(t)

	config, err := parseKubeConfig([]byte(kubeConfigWith(server+", insecure-skip-tls-verify: true", token+", as: alice")))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Insecure).To(BeTrue(), "the kubeconfig decides it")
	g.Expect(config.Impersonate.UserName).To(Equal("alice"))
}
