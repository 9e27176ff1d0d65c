package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// requestAttempts make the operator send requests to servers that only it can reach.
var requestAttempts = []attempt{
	{"A source at 127.0.0.1, in all its notations, by TLS", func(a *arena) string { return a.notations("https") }},
	{"A registry at 127.0.0.1, by TLS and in plain text", func(a *arena) string {
		i := a.inner()

		return a.each(func(p *v1alpha2.FetchConfiguration, address string) { p.OCI = address },
			"oci://"+i.address+"/x", "http://"+i.address+"/x", "oci://localhost:"+i.port+"/x")
	}},
	{"A proxy in the source's Secret that is an inner server", func(a *arena) string {
		return a.withProxy("http://"+a.inner().address, v1alpha2.FetchConfiguration{HTTP: "https://mirror.example.com"})
	}},
	{"A web server with TLS that redirects a cluster template to an inner server", func(a *arena) string {
		return a.redirected(a.server, "https://"+a.inner().address)
	}},
	{"A web server with TLS that redirects a cluster template to another server, for the source's token",
		func(a *arena) string {
			var shown atomic.Bool

			other := a.server(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				shown.Store(r.Header.Get("Authorization") != "" || shown.Load())
			}))
			a.never("the other server has the token", func(context.Context) bool { return shown.Load() })

			return a.redirected(a.server, other)
		}},
	{"A release server whose assets are at an inner server", func(a *arena) string {
		i := a.inner()
		trust := a.trust(map[string]string{"token": "x"})
		server := a.server(&gitHub{p: a.small(""), asset: "https://" + i.address})

		return a.attempted(a.small("").from(v1alpha2.FetchConfiguration{
			URL:       server + "/o/p/releases/v1.0.0/infrastructure-components.yaml",
			SecretRef: secretOf(trust),
		}), trust)
	}},
	{"A release with a template named ../../x, which would make the stored chart unreadable", func(a *arena) string {
		trust := a.trust(nil)
		server := a.server(&gitHub{p: a.small(""), templates: []string{"cluster-template/../../../x.yaml"}})
		a.never("the chart cannot be read any more", func(ctx context.Context) bool {
			return strings.Contains(a.readableByTenant(ctx), "does not lie in the chart")
		})

		p := a.small("").from(v1alpha2.FetchConfiguration{
			URL:       server + "/o/p/releases/v1.0.0/infrastructure-components.yaml",
			SecretRef: secretOf(trust),
		})
		a.attempted(p, trust)

		return a.changed(p)
	}},
}

// credentialAttempts collect the operator's own credentials.
var credentialAttempts = []attempt{
	{"A proxy and an authority of the tenant between the operator and its registry", func(a *arena) string {
		a.neverReceived("the operator's password", registryPassword)

		return a.withProxy(a.proxy(), v1alpha2.FetchConfiguration{OCI: "oci://" + a.charts.Address + "/private/x"})
	}},
	{"A proxy and an authority of the tenant between the operator and github.com", func(a *arena) string {
		a.neverReceived("the operator's token", gitHubToken)

		return a.withProxy(a.proxy(), v1alpha2.FetchConfiguration{URL: "https://github.com/o/p/releases/v1.0.0/x.yaml"})
	}},
	{"A registry at the same host as the operator's, on another port, that asks for a password", func(a *arena) string {
		a.neverReceived("the operator's password", registryPassword)
		trust := a.trust(nil)

		return a.attempted(a.small("").from(v1alpha2.FetchConfiguration{
			OCI: registryAt(a.server(asksForPassword)), SecretRef: secretOf(trust),
		}), trust)
	}},
	{"A URL with the user github.com at the tenant's host", func(a *arena) string {
		a.neverReceived("the operator's token", gitHubToken)
		trust := a.trust(nil)
		server := strings.Replace(a.server(http.NotFoundHandler()), "https://", "https://github.com@", 1)

		return a.attempted(a.small("").from(v1alpha2.FetchConfiguration{
			URL: server + "/o/p/releases/v1.0.0/x.yaml", SecretRef: secretOf(trust),
		}), trust)
	}},
}

// notations tries all notations of an inner server's address.
func (a *arena) notations(scheme string) string {
	i := a.inner()

	var addresses []string
	for _, host := range []string{
		"127.0.0.1", "localhost", "2130706433", "0x7f000001", "127.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::]",
	} {
		addresses = append(addresses, fmt.Sprintf("%s://%s:%s/x", scheme, host, i.port))
	}

	return a.each(func(p *v1alpha2.FetchConfiguration, address string) { p.HTTP = address }, addresses...)
}

// each tries a source with several addresses and returns the answer to the first.
func (a *arena) each(set func(*v1alpha2.FetchConfiguration, string), addresses ...string) string {
	a.Helper()

	var providers []v1alpha2.Provider

	for n, address := range addresses {
		s := small{tenant, fmt.Sprintf("%s-%d", a.name, n), "v1.0.0", ""}
		config := v1alpha2.FetchConfiguration{}
		set(&config, address)
		providers = append(providers, s.from(config))
		a.create(providers[n])
	}

	var answers []string
	for _, p := range providers {
		answers = append(answers, a.outcome(p))
	}

	return strings.Join(answers, " | ")
}

// withProxy tries a source through a proxy, with the attacker's authority.
func (a *arena) withProxy(proxy string, config v1alpha2.FetchConfiguration) string {
	a.Helper()

	trust := a.trust(map[string]string{"proxy": proxy})
	config.SecretRef = secretOf(trust)

	return a.attempted(a.small("").from(config), trust)
}

// redirected tries a release server that redirects the download of a cluster template to another one. The source has a
// token.
func (a *arena) redirected(start func(http.Handler) string, target string) string {
	a.Helper()

	trust := a.trust(map[string]string{"token": "x"})
	server := start(&gitHub{
		p: a.small(""), templates: []string{"cluster-template-x.yaml"},
		redirect: target + "/latest/meta-data/iam/security-credentials/node",
	})

	return a.attempted(a.small("").from(v1alpha2.FetchConfiguration{
		URL:       server + "/o/p/releases/v1.0.0/infrastructure-components.yaml",
		SecretRef: secretOf(trust),
	}), trust)
}

// gitHub is a hostile server with GitHub's paths.
type gitHub struct {
	p         small
	templates []string // names of cluster templates
	redirect  string   // where templates are
	asset     string   // where the assets of the API are
	next      string   // the next page of releases
	fill      []byte   // the content of templates
}

func (s *gitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]

	switch {
	case strings.Contains(r.URL.Path, "/api/"):
		if s.next != "" {
			w.Header().Set("Link", fmt.Sprintf(`<%s>; rel="next"`, s.next))
		}

		s.describe(w, r)
	case strings.Contains(r.URL.Path, "cluster-template") && s.redirect != "":
		http.Redirect(w, r, s.redirect, http.StatusFound)
	case strings.Contains(r.URL.Path, "cluster-template"):
		_, _ = w.Write(s.fill)
	case s.asset != "" || strings.HasSuffix(name, "list"):
		http.NotFound(w, r)
	default:
		releases(s.p).ServeHTTP(w, r)
	}
}

// describe writes the release, or a list of it, as GitHub's API does.
func (s *gitHub) describe(w http.ResponseWriter, r *http.Request) {
	var assets []map[string]string

	base := s.asset
	if base == "" {
		base = "https://" + r.Host
	}

	for _, name := range append([]string{"metadata.yaml", "infrastructure-components.yaml"}, s.templates...) {
		assets = append(assets, map[string]string{"name": name, "url": base + "/assets/" + name})
	}

	release := map[string]any{"tag_name": "v1.0.0", "assets": assets}
	if strings.Contains(r.URL.Path, "/tags/") {
		_ = json.NewEncoder(w).Encode(release)
	} else {
		_ = json.NewEncoder(w).Encode([]any{release})
	}
}

// secretOf returns the name of a Secret as a reference.
func secretOf(s *corev1.Secret) *v1alpha2.LocalSecretReference {
	return &v1alpha2.LocalSecretReference{Name: s.Name}
}
