package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Guard restricts where the operator connects to for sources and kubeconfigs, whose addresses are written by users of
// the cluster: they must not reach what only the operator can reach. A nil Guard restricts nothing.
type Guard struct {
	// Allowed are ranges of addresses that may be connected to although they are special.
	Allowed []netip.Prefix
	// APIServers are addresses of the API server, as host:port, which are never connected to.
	APIServers []string
	// RedirectHosts are globs of hosts that any server may redirect to.
	RedirectHosts []string
}

// AddressError reports a connection that a Guard refuses.
type AddressError struct {
	// Host that was requested, and Address that it has.
	Host, Address string
	// Kind of the address, for example "a loopback address".
	Kind string
	// Never reports that no flag allows the address.
	Never bool
}

func (e *AddressError) Error() string {
	text := fmt.Sprintf(
		"%s is %s (%s), to which the operator does not connect; use another address", e.Host, e.Kind, e.Address)
	if e.Never {
		return text
	}

	return text + ", or allow it with the operator's flag --allowed-source-addresses"
}

// ParseRanges parses the value of the flag for Guard.Allowed.
func ParseRanges(texts []string) ([]netip.Prefix, error) {
	ranges := make([]netip.Prefix, 0, len(texts))

	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--allowed-source-addresses: %s is not a range of addresses such as 10.0.0.0/8", text)
		}

		ranges = append(ranges, prefix)
	}

	return ranges, nil
}

// special are the ranges of addresses that are refused: those of the pod, the node and the network
// itself, and those of clouds' metadata servers, which are not all link-local.
var special = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},
	{netip.MustParsePrefix("fd00:ec2::/32"), "the address of a metadata server"},          // AWS
	{netip.MustParsePrefix("fd20:ce::254/128"), "the address of a metadata server"},       // Google
	{netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), "the address of a metadata server"}, // Oracle
	{netip.MustParsePrefix("fd00:42::42/128"), "the address of a metadata server"},        // Scaleway
	{netip.MustParsePrefix("fd00:a9fe:a9fe::1/128"), "the address of a metadata server"},  // Akamai
	{netip.MustParsePrefix("100.100.100.200/32"), "the address of a metadata server"},
	{netip.MustParsePrefix("168.63.129.16/32"), "the address of a metadata server"},
	{netip.MustParsePrefix("192.0.0.192/32"), "the address of a metadata server"},
}

// nat64 is the prefix of IPv6 addresses that contain an IPv4 address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// plain returns an address without a zone, and the IPv4 address that an IPv6 address contains.
func plain(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if !nat64.Contains(address) {
		return address
	}

	const embedded = 12 // the last four of 16 bytes

	bytes := address.As16()

	return netip.AddrFrom4([4]byte(bytes[embedded:]))
}

// embeddings are further prefixes of IPv6 addresses that contain an IPv4 address, and where its bytes can be: for local
// NAT64, that depends on the length of the network's own prefix.
var embeddings = []struct {
	prefix netip.Prefix
	bytes  [][4]int
}{
	{netip.MustParsePrefix("::/96"), [][4]int{{12, 13, 14, 15}}},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), [][4]int{{12, 13, 14, 15}}},
	{netip.MustParsePrefix("2002::/16"), [][4]int{{2, 3, 4, 5}}},
	{
		netip.MustParsePrefix("64:ff9b:1::/48"),
		[][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}},
	},
}

// forms returns a plain address and the IPv4 addresses that may be reached through it. What looks like an address of
// the network 0.0.0.0/8 is the padding of another form.
func forms(address netip.Addr) []netip.Addr {
	all := []netip.Addr{address}

	for _, e := range embeddings {
		if !e.prefix.Contains(address) {
			continue
		}

		from := address.As16()

		for _, at := range e.bytes {
			if from[at[0]] != 0 {
				all = append(all, netip.AddrFrom4([4]byte{from[at[0]], from[at[1]], from[at[2]], from[at[3]]}))
			}
		}
	}

	return all
}

// CheckHost returns an *AddressError if a host is the literal of an address that is refused, which
// matters where a proxy connects to it.
func (g *Guard) CheckHost(host string) error {
	address, err := netip.ParseAddr(host)
	if g == nil || err != nil {
		return nil //nolint:nilerr // a name, which is checked when it is resolved
	}

	if refused := g.refuse(address); refused != nil {
		refused.Host = host
		return refused
	}

	return nil
}

// refuse returns an error if an address is special and not allowed.
func (g *Guard) refuse(address netip.Addr) *AddressError {
	address = plain(address)

	if g.allows(address) {
		return nil
	}

	for _, form := range forms(address) {
		for _, s := range special {
			if s.prefix.Contains(form) && !g.allows(form) {
				return &AddressError{Address: address.String(), Kind: s.kind}
			}
		}
	}

	return nil
}

func (g *Guard) allows(address netip.Addr) bool {
	return slices.ContainsFunc(g.Allowed, func(p netip.Prefix) bool { return p.Contains(address) })
}

// dial connects to an address unless that, after its name was resolved, is refused.
func (g *Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	const timeout = 30 * time.Second // as in http.DefaultTransport

	dialer := &net.Dialer{Timeout: timeout, KeepAlive: timeout}
	if isOwnProxy(address) {
		return dialer.DialContext(ctx, network, address)
	}

	apiServers := g.resolveAPIServers(ctx)
	dialer.Control = func(_, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}

		for _, form := range forms(plain(to.Addr())) {
			if slices.Contains(apiServers, netip.AddrPortFrom(form, to.Port())) {
				return &AddressError{Address: resolved, Kind: "the API server's address", Never: true}
			}
		}

		if refused := g.refuse(to.Addr()); refused != nil {
			return refused
		}

		return nil
	}

	conn, err := dialer.DialContext(ctx, network, address)

	var refused *AddressError
	if errors.As(err, &refused) {
		refused.Host, _, _ = net.SplitHostPort(address)
		return nil, refused
	}

	return conn, err
}

// DialThrough returns a function that connects to an address by another one, unless the address, after its name was
// resolved, is refused. The other one is called with IP addresses, one after the other; nil for the default.
func (g *Guard) DialThrough(
	next func(ctx context.Context, network, address string) (net.Conn, error),
) func(ctx context.Context, network, address string) (net.Conn, error) {
	const timeout = 30 * time.Second

	if next == nil {
		next = (&net.Dialer{Timeout: timeout, KeepAlive: timeout}).DialContext
	}

	if g == nil {
		return next
	}

	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil || isOwnProxy(address) {
			return next(ctx, network, address)
		}

		resolved, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, err
		}

		var failures []error

		for _, found := range resolved {
			if refused := g.refuse(found); refused != nil {
				refused.Host = host
				failures = append(failures, refused)

				continue
			}

			conn, err := next(ctx, network, net.JoinHostPort(plain(found).String(), port))
			if err == nil {
				return conn, nil
			}

			failures = append(failures, err)
		}

		return nil, errors.Join(failures...)
	}
}

// resolveAPIServers returns the current addresses of the API server. Those that cannot be resolved
// cannot be reached either.
func (g *Guard) resolveAPIServers(ctx context.Context) []netip.AddrPort {
	var all []netip.AddrPort

	for _, server := range g.APIServers {
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			continue
		}

		number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
		if err != nil {
			continue
		}

		addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			continue
		}

		for _, address := range addresses {
			all = append(all, netip.AddrPortFrom(plain(address), uint16(number)))
		}
	}

	return all
}

// isOwnProxy reports whether an address is that of a proxy in the environment.
func isOwnProxy(address string) bool {
	for _, scheme := range []string{"https", "http"} {
		// A host that no list of exceptions contains.
		request := &http.Request{URL: &url.URL{Scheme: scheme, Host: "source.invalid"}}

		proxy, err := http.ProxyFromEnvironment(request)
		if err == nil && proxy != nil && address == HostPort(proxy) {
			return true
		}
	}

	return false
}

// HostPort returns the address of a URL, with the default port of its scheme.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}

	return net.JoinHostPort(u.Hostname(), port)
}

// downloadHosts are globs of the hosts from which well-known servers have their files downloaded.
var downloadHosts = map[string][]string{
	"github.com":      {"*.githubusercontent.com", "codeload.github.com"},
	"api.github.com":  {"*.githubusercontent.com", "codeload.github.com"},
	"gitlab.com":      {"storage.googleapis.com", "cdn.artifacts.gitlab-static.net"},
	"registry.k8s.io": {"*.pkg.dev"},
}

// MayRedirect reports whether a server may redirect a request: to itself and below its own name, to the
// download hosts of well-known servers, and to RedirectHosts, other hosts only by https.
func (g *Guard) MayRedirect(from, to *url.URL) bool {
	here, there := strings.ToLower(from.Hostname()), strings.ToLower(to.Hostname())

	switch {
	case g == nil, here == there:
		return true
	case to.Scheme != "https":
		return false
	}

	_, notName := netip.ParseAddr(here)
	if notName != nil && strings.HasSuffix(there, "."+here) {
		return true
	}

	return MatchHost(downloadHosts[here], there) || MatchHost(g.RedirectHosts, there)
}

// MatchHost reports whether a host matches one of the globs, in which * matches any part of a name.
func MatchHost(globs []string, host string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		matched, err := path.Match(strings.ToLower(glob), strings.ToLower(host))
		return err == nil && matched
	})
}
