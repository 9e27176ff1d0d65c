package fetch

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// Policy restricts the sources of all resources, as the operator's flags say. It does not apply to the operator's own
// chart repository. A nil Policy allows everything.
type Policy struct {
	// PlainHTTP allows sources without TLS.
	PlainHTTP bool
	// Signed are globs of registries, as host[/path], whose content is used only with a signature.
	Signed []string
	// Guard restricts hosts, redirects and connections, those to remote clusters included. With a chart repository,
	// no hosts means none.
	Guard transport.Guard

	addresses []string
}

// BindFlags adds the policy's flags. Parse must be called after they were parsed.
func (p *Policy) BindFlags(set *pflag.FlagSet) {
	set.StringSliceVar(&p.Guard.Hosts, "allowed-source-hosts", nil,
		"Comma-separated globs of the hosts that sources may have, and redirect to, such as *.example.com. "+
			"Default: all, or with --chart-repository only that repository.")
	set.BoolVar(&p.PlainHTTP, "allow-http-sources", false, "Allow sources without TLS.")
	set.StringSliceVar(&p.addresses, "allowed-source-addresses", nil,
		"Comma-separated ranges of loopback, link-local or otherwise special IP addresses that sources and "+
			"remote clusters may have, such as 127.0.0.0/8.")
	set.StringSliceVar(&p.Signed, "require-signatures", nil,
		"Comma-separated globs of registries, as host[/path], whose artifacts and images need "+
			"spec.fetchConfig.verify.")
}

// Parse checks the values of the flags. The API servers, as URLs or as host:port, are never connected
// to for a source.
func (p *Policy) Parse(apiServers ...string) error {
	for _, text := range p.addresses {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--allowed-source-addresses: %s is not a range of addresses such as 10.0.0.0/8", text)
		}

		p.Guard.Addresses = append(p.Guard.Addresses, prefix)
	}

	for name, globs := range map[string][]string{
		"allowed-source-hosts": p.Guard.Hosts, "require-signatures": p.Signed,
	} {
		for _, glob := range globs {
			if _, err := path.Match(glob, ""); err != nil || strings.Contains(glob, "://") {
				return fmt.Errorf("--%s: %s is not a host, or a glob of hosts such as *.example.com", name, glob)
			}
		}
	}

	for _, server := range apiServers {
		if u, err := url.Parse(server); err == nil && u.Host != "" {
			server = transport.HostPort(u)
		}

		p.Guard.APIServers = append(p.Guard.APIServers, server)
	}

	return nil
}

// listsHosts reports whether the policy lists the hosts that sources may have.
func (p *Policy) listsHosts() bool { return p != nil && len(p.Guard.Hosts) > 0 }

// guard returns what restricts the connections; nil for no restriction.
func (p *Policy) guard() *transport.Guard {
	if p == nil {
		return nil
	}

	return &p.Guard
}

// checkURL returns an error unless a source on a web server is allowed.
func (p *Policy) checkURL(address string) error {
	u, err := url.Parse(address)
	if p == nil || err != nil || u.Host == "" {
		return nil //nolint:nilerr // NewWebsite reports it
	}

	return p.checkHost(address, u.Hostname(), u.Scheme != "http")
}

// checkEntry returns an error unless the source of an entry of the catalog is allowed.
func (p *Policy) checkEntry(e catalog.Entry) error {
	if ref := cmp.Or(e.Artifact(), e.Image()); ref != "" {
		return p.checkRegistry(ref, &v1alpha2.FetchConfiguration{})
	}

	return p.checkURL(e.URL)
}

// checkHost returns an error unless a source may be at a host.
func (p *Policy) checkHost(address, host string, tls bool) error {
	if p.listsHosts() && !transport.MatchHost(p.Guard.Hosts, host) {
		return refuse("the source %s is not allowed: its host is not one of %s, which the operator's "+
			"flag --allowed-source-hosts lists; use one of these", address, strings.Join(p.Guard.Hosts, ", "))
	}

	if !tls && !p.PlainHTTP {
		return refuse("the source %s is not allowed: it does not use TLS; use https, or allow it with "+
			"the operator's flag --allow-http-sources", address)
	}

	if err := p.Guard.CheckHost(host); err != nil {
		return refuse("the source %s is not allowed: %v", address, err)
	}

	return nil
}

// checkProxy returns an error unless the proxy of a Secret is allowed: with a certificate authority of
// the same Secret, it decides what the source contains.
func (p *Policy) checkProxy(address string) error {
	u, err := url.Parse(address)
	if !p.listsHosts() || address == "" || err != nil || transport.MatchHost(p.Guard.Hosts, u.Hostname()) {
		return nil //nolint:nilerr // the transport reports it
	}

	return refuse("the proxy %s of the Secret of spec.fetchConfig.secretRef is not allowed: "+
		"it is not one of %s, which the operator's flag --allowed-source-hosts lists; remove the proxy, or use one "+
		"of these", u.Host, strings.Join(p.Guard.Hosts, ", "))
}

// checkRegistry returns an error unless a source in a registry is allowed.
func (p *Policy) checkRegistry(address string, config *v1alpha2.FetchConfiguration) error {
	ref, err := oci.Parse(address)
	if p == nil || err != nil {
		return nil //nolint:nilerr // NewArtifact and NewImage report it
	}

	if err := p.checkHost(address, hostOf(ref), !ref.PlainHTTP); err != nil {
		return err
	}

	if config.Verify == nil && p.requiresSignature(ref) {
		return refuse("the source %s is not allowed without a signature, which the operator's flag "+
			"--require-signatures requires; set spec.fetchConfig.verify", address)
	}

	return nil
}

// hostOf returns the host of a registry without its port.
func hostOf(ref oci.Reference) string { return (&url.URL{Host: ref.Registry}).Hostname() }

// requiresSignature reports whether a glob matches the host of a registry and the beginning of the path.
func (p *Policy) requiresSignature(ref oci.Reference) bool {
	parts := append([]string{strings.ToLower(hostOf(ref))}, strings.Split(ref.Repository, "/")...)

	return slices.ContainsFunc(p.Signed, func(glob string) bool {
		globs := strings.Split(strings.TrimSuffix(glob, "/"), "/")
		if len(globs) > len(parts) {
			return false
		}

		globs[0] = strings.ToLower(globs[0])

		for i := range globs {
			if matched, err := path.Match(globs[i], parts[i]); err != nil || !matched {
				return false
			}
		}

		return true
	})
}
