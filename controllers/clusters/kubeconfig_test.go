package clusters

import (
	"strings"
	"testing"

	fluxclient "github.com/fluxcd/pkg/runtime/client"
	. "github.com/onsi/gomega"
)

// kubeConfigWith returns a kubeconfig with fields of the cluster and of the user.
func kubeConfigWith(cluster, user string) string {
	return `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {` + cluster + `}}]
users: [{name: u, user: {` + user + `}}, {name: unused, user: {tokenFile: /hunter2}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
}

const (
	server = "server: https://there.example.com"
	token  = "token: hunter2"
	exec   = "exec: {apiVersion: client.authentication.k8s.io/v1, command: hunter2, interactiveMode: Never}"
)

func TestParseKubeConfig(t *testing.T) {
	none := fluxclient.KubeConfigOptions{}
	insecureTLS := fluxclient.KubeConfigOptions{InsecureTLS: true}
	insecureExec := fluxclient.KubeConfigOptions{InsecureExecProvider: true}
	deep := strings.Repeat("[", maxKubeConfigDepth) + strings.Repeat("]", maxKubeConfigDepth)

	for name, test := range map[string]struct {
		kubeConfig string
		options    fluxclient.KubeConfigOptions
		// refused is part of the error; empty if the kubeconfig is allowed.
		refused string
	}{
		"a server and a token":  {kubeConfigWith(server, token), none, ""},
		"a proxy":               {kubeConfigWith(server+", proxy-url: socks5://proxy.example.com:1080", token), none, ""},
		"a user to impersonate": {kubeConfigWith(server, token+", as: alice"), none, ""},

		"exec": {kubeConfigWith(server, exec), none,
			"exec runs a program, which is not allowed; use a token or a client certificate, " +
				"or run the operator with --insecure-kubeconfig-exec"},
		"exec, allowed":                     {kubeConfigWith(server, exec), insecureExec, ""},
		"exec, although insecure TLS is on": {kubeConfigWith(server, exec), insecureTLS, "exec runs a program"},
		"an auth provider": {kubeConfigWith(server, "auth-provider: {name: oidc}"), insecureExec,
			"auth-provider is not supported; use a token or a client certificate"},

		"a certificate authority's path": {kubeConfigWith(server+", certificate-authority: /hunter2", token), insecureTLS,
			"certificate-authority is a path, which is not allowed; use certificate-authority-data"},
		"a certificate's path": {kubeConfigWith(server, "client-certificate: /hunter2"), insecureTLS,
			"client-certificate is a path, which is not allowed; use client-certificate-data"},
		"a key's path": {kubeConfigWith(server, "client-key: /hunter2"), insecureExec,
			"client-key is a path, which is not allowed; use client-key-data"},
		"a token's path": {kubeConfigWith(server, "tokenFile: /hunter2"), insecureExec,
			"tokenFile is a path, which is not allowed; use token"},

		"insecure TLS": {kubeConfigWith(server+", insecure-skip-tls-verify: true", token), insecureExec,
			"insecure-skip-tls-verify is not allowed; set certificate-authority-data instead, " +
				"or run the operator with --insecure-kubeconfig-tls"},
		"insecure TLS, allowed": {kubeConfigWith(server+", insecure-skip-tls-verify: true", token), insecureTLS, ""},
		"plain HTTP": {kubeConfigWith("server: http://there.example.com", token), none,
			"server uses plain HTTP, which is not allowed; use https://, or run the operator with --insecure-kubeconfig-tls"},
		"plain HTTP, allowed": {kubeConfigWith("server: http://there.example.com", token), insecureTLS, ""},

		"no scheme": {kubeConfigWith("server: there.example.com", token), insecureTLS,
			"server must be a URL that starts with https://"},
		"no server": {kubeConfigWith("", token), none, "server must be a URL that starts with https://"},
		"credentials in the server": {kubeConfigWith("server: https://a:hunter2@there.example.com", token), none,
			"server contains credentials, which is not allowed; move them to the user"},
		"a proxy that is a file": {kubeConfigWith(server+", proxy-url: file:///hunter2", token), insecureTLS,
			"proxy-url must start with https://, http:// or socks5://"},

		"no context": {strings.Replace(kubeConfigWith(server, token), "current-context: x", "", 1), none,
			"current-context names no context; set it"},
		"no user": {strings.Replace(kubeConfigWith(server, token), "user: u}", "user: hunter2}", 1), none,
			"the current context names a cluster or user that does not exist; correct it"},

		"too large": {kubeConfigWith(server, token) + "# " + strings.Repeat("x", maxKubeConfig), none,
			"it is larger than 512 KiB; keep only the current context"},
		"aliases":      {kubeConfigWith(server, token) + "a: &a hunter2\nb: *a\n", none, "it is not a usable kubeconfig"},
		"too deep":     {kubeConfigWith(server, token) + "a: " + deep, none, "it is not a usable kubeconfig"},
		"another kind": {"hunter2", none, "it is not a usable kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			config, err := parseKubeConfig([]byte(test.kubeConfig), test.options, nil)
			if test.refused == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(config.Host).To(HaveSuffix("there.example.com"))

				return
			}

			g.Expect(err).To(MatchError(ContainSubstring(test.refused)))
			g.Expect(err).NotTo(MatchError(ContainSubstring("hunter2")), "a value of the kubeconfig")
		})
	}
}

func TestSanitize(t *testing.T) {
	g := NewWithT(t)
	everything := fluxclient.KubeConfigOptions{InsecureTLS: true, InsecureExecProvider: true}

	insecure := kubeConfigWith(server+", insecure-skip-tls-verify: true", exec)
	config, err := parseKubeConfig([]byte(insecure), everything, nil)
	g.Expect(err).NotTo(HaveOccurred())

	strict := sanitize(config, fluxclient.KubeConfigOptions{})
	g.Expect(strict.ExecProvider).To(BeNil())
	g.Expect(strict.Insecure).To(BeFalse())

	allowed := sanitize(config, everything)
	g.Expect(allowed.ExecProvider).NotTo(BeNil())
	g.Expect(allowed.Insecure).To(BeTrue())
	g.Expect(allowed.Timeout).To(BeZero(), "it would end watches")

	config, err = parseKubeConfig([]byte(kubeConfigWith(server, token+", as: alice")), fluxclient.KubeConfigOptions{}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sanitize(config, fluxclient.KubeConfigOptions{}).Impersonate.UserName).To(Equal("alice"))
}
