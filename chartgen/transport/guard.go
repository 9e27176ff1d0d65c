package transport

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Guard restricts where the operator connects to for sources and kubeconfigs, whose addresses are written by users of
// the cluster: they must not reach what only the operator can reach. A nil Guard restricts nothing.
type Guard struct {
	// Hosts are globs of the hosts that sources may have, and redirect to; empty for all.
	Hosts []string
	// Addresses are ranges of addresses that may be connected to although they are special.
	Addresses []netip.Prefix
	// APIServers are addresses of the API server, as host:port, to which sources never have the operator connect.
	APIServers []string
}

// metadataServers are the addresses of clouds' metadata servers that are not link-local.
var metadataServers = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),          // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),       // Google
	netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), // Oracle
	netip.MustParsePrefix("192.0.0.192/32"),         // Oracle
	netip.MustParsePrefix("fd00:42::42/128"),        // Scaleway
	netip.MustParsePrefix("fd00:a9fe:a9fe::1/128"),  // Akamai
	netip.MustParsePrefix("100.100.100.200/32"),     // Alibaba
	netip.MustParsePrefix("168.63.129.16/32"),       // Azure
}

// specialKind returns what is special about an address: it is that of the pod, the node, the network itself or a
// metadata server. It is empty if nothing is.
func specialKind(address netip.Addr) string {
	const reserved = 240 // and above, the first byte

	switch {
	case address.IsUnspecified(), address.Is4() && address.As4()[0] == 0:
		return "an unspecified address"
	case address.IsLoopback():
		return "a loopback address"
	case address.IsLinkLocalUnicast():
		return "a link-local address"
	case address.IsMulticast():
		return "a multicast address"
	case address.Is4() && address.As4()[0] >= reserved:
		return "a reserved address"
	case slices.ContainsFunc(metadataServers, func(p netip.Prefix) bool { return p.Contains(address) }):
		return "the address of a metadata server"
	}

	return ""
}

// embeddings are prefixes of IPv6 addresses that contain an IPv4 address, and where its bytes can be: for local
// NAT64, that depends on the length of the network's own prefix.
var embeddings = map[netip.Prefix][][4]int{
	netip.MustParsePrefix("::/96"):           {{12, 13, 14, 15}},
	netip.MustParsePrefix("::ffff:0:0:0/96"): {{12, 13, 14, 15}},
	netip.MustParsePrefix("64:ff9b::/96"):    {{12, 13, 14, 15}},
	netip.MustParsePrefix("2002::/16"):       {{2, 3, 4, 5}},
	netip.MustParsePrefix("64:ff9b:1::/48"):  {{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}},
}

// forms returns an address without its zone, and the IPv4 addresses that may be reached through it. What looks like an
// address of the network 0.0.0.0/8 is the padding of another form.
func forms(address netip.Addr) []netip.Addr {
	address = address.Unmap().WithZone("")
	all := []netip.Addr{address}

	for prefix, places := range embeddings {
		if !prefix.Contains(address) {
			continue
		}

		from := address.As16()

		for _, at := range places {
			if from[at[0]] != 0 {
				all = append(all, netip.AddrFrom4([4]byte{from[at[0]], from[at[1]], from[at[2]], from[at[3]]}))
			}
		}
	}

	return all
}

// check returns an *Error if an address of a host is special and not allowed.
func (g *Guard) check(host string, address netip.Addr) error {
	if g == nil {
		return nil
	}

	all := forms(address)
	if g.allows(all[0]) {
		return nil
	}

	for _, form := range all {
		if kind := specialKind(form); kind != "" && !g.allows(form) {
			if address := all[0].String(); address != host {
				kind += " (" + address + ")"
			}

			return &Error{
				Kind:    Refused,
				Problem: fmt.Sprintf("%s is %s, to which the operator does not connect", host, kind),
				Fix:     "use another address, or allow it with the operator's flag --allowed-source-addresses",
			}
		}
	}

	return nil
}

func (g *Guard) allows(address netip.Addr) bool {
	return slices.ContainsFunc(g.Addresses, func(p netip.Prefix) bool { return p.Contains(address) })
}

// CheckHost returns an *Error if a host is the literal of an address that is refused, which
// matters where a proxy connects to it.
func (g *Guard) CheckHost(host string) error {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return nil //nolint:nilerr // a name, which is checked when it is resolved
	}

	return g.check(host, address)
}

// control returns a function for net.Dialer that refuses the resolved addresses of an address.
func (g *Guard) control(
	ctx context.Context, address string,
) func(ctx context.Context, network, resolved string, _ syscall.RawConn) error {
	host, _, _ := net.SplitHostPort(address) // the dialer reports it
	apiServers := g.resolveAPIServers(ctx)

	return func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}

		for _, form := range forms(to.Addr()) {
			if slices.Contains(apiServers, netip.AddrPortFrom(form, to.Port())) {
				return &Error{
					Kind: Refused,
					Problem: fmt.Sprintf("%s is the API server's address (%s), to which the operator does not connect",
						host, resolved),
					Fix: "use another address",
				}
			}
		}

		return g.check(host, to.Addr())
	}
}

// resolveAPIServers returns the current addresses of the API server. Those that cannot be resolved
// cannot be reached either.
func (g *Guard) resolveAPIServers(ctx context.Context) []netip.AddrPort {
	var all []netip.AddrPort

	for _, server := range g.APIServers {
		host, port, _ := net.SplitHostPort(server)
		number, _ := strconv.ParseUint(port, 10, 16)
		addresses, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host)

		for _, address := range addresses {
			all = append(all, netip.AddrPortFrom(address.Unmap(), uint16(number)))
		}
	}

	return all
}

// Dial connects to an address, unless that is refused after its name was resolved.
func (g *Guard) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}

	if g != nil && !isOwnProxy(address) {
		host, _, _ := net.SplitHostPort(address) // the dialer reports it

		dialer.Control = func(_, resolved string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return err
			}

			return g.check(host, to.Addr())
		}
	}

	return dialer.DialContext(ctx, network, address)
}

// isOwnProxy reports whether an address is that of a proxy in the environment.
func isOwnProxy(address string) bool {
	return slices.ContainsFunc([]string{"https", "http"}, func(scheme string) bool {
		// A host that no list of exceptions contains.
		request := &http.Request{URL: &url.URL{Scheme: scheme, Host: "source.invalid"}}

		proxy, err := http.ProxyFromEnvironment(request)

		return err == nil && proxy != nil && address == HostPort(proxy)
	})
}

// HostPort returns the address of a URL, with the default port of its scheme.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80", "socks5": "1080"}[u.Scheme]
	}

	return net.JoinHostPort(u.Hostname(), port)
}

// downloadHosts are globs of the hosts from which well-known servers have their files downloaded. If sources may be at
// such a server, it may redirect there.
var downloadHosts = map[string][]string{
	"github.com":           {"*.githubusercontent.com", "codeload.github.com"},
	"api.github.com":       {"*.githubusercontent.com", "codeload.github.com"},
	"ghcr.io":              {"*.githubusercontent.com"},
	"gitlab.com":           {"storage.googleapis.com", "cdn.artifacts.gitlab-static.net"},
	"quay.io":              {"*.quay.io"},
	"registry-1.docker.io": {"*.docker.com", "docker-images-prod.*.r2.cloudflarestorage.com"},
	"registry.k8s.io":      {"*.pkg.dev", "prod-registry-k8s-io-*.amazonaws.com"},
}

// checkRedirect limits redirects, keeps credentials from other servers, and refuses what a source may not be, either:
// a server could otherwise choose what the operator connects to.
func (g *Guard) checkRedirect(req *http.Request, via []*http.Request) error {
	const maxRedirects = 10

	from, to := via[0].URL, req.URL
	problem := ""

	switch {
	case len(via) >= maxRedirects:
		problem = fmt.Sprintf("redirects more than %d times", maxRedirects)
	case from.Scheme == "https" && to.Scheme != "https":
		problem = "redirects from https to http"
	case !g.mayRedirect(from, to):
		problem = "redirects to " + to.Host + ", which the operator's flag --allowed-source-hosts does not list"
	}

	if problem != "" {
		return &Error{Kind: Refused, Problem: "the server " + problem, Fix: "use the address of the file itself"}
	}

	// net/http keeps them for other ports and for subdomains.
	if Origin(from) != Origin(to) {
		req.Header.Del("Authorization")
	}

	return g.CheckHost(to.Hostname())
}

// mayRedirect reports whether a server may redirect to another host.
func (g *Guard) mayRedirect(from, to *url.URL) bool {
	return g == nil || len(g.Hosts) == 0 || from.Hostname() == to.Hostname() ||
		MatchHost(g.Hosts, to.Hostname()) || MatchHost(downloadHosts[strings.ToLower(from.Hostname())], to.Hostname())
}

// MatchHost reports whether a host matches one of the globs, in which * matches any part of a name.
func MatchHost(globs []string, host string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		matched, err := path.Match(strings.ToLower(glob), strings.ToLower(host))
		return err == nil && matched
	})
}
