package transport

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

func TestGuardRefusesSpecialAddresses(t *testing.T) {
	allowed := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

	for address, kind := range map[string]string{
		"0.0.0.0":                "an unspecified address",
		"::":                     "an unspecified address",
		"::1":                    "a loopback address",
		"169.254.169.254":        "a link-local address",
		"::ffff:169.254.169.254": "a link-local address",
		"64:ff9b::a9fe:a9fe":     "a link-local address",
		"fe80::1%eth0":           "a link-local address",
		"224.0.0.1":              "a multicast address",
		"ff02::1":                "a multicast address",
		"255.255.255.255":        "a reserved address",
		"fd00:ec2::254":          "the address of a metadata server",
		"fd20:ce::254":           "the address of a metadata server",
		"fd00:c1::a9fe:a9fe":     "the address of a metadata server",
		"fd00:42::42":            "the address of a metadata server",
		"fd00:a9fe:a9fe::1":      "the address of a metadata server",
		"64:ff9b::a83f:8110":     "the address of a metadata server",

		// Local NAT64, by the length of the network's prefix: 48, 56, 64 and 96 bits.
		"64:ff9b:1:a9fe:a9:fe00::":   "a link-local address",
		"64:ff9b:1:7a9:fe:a9fe::":    "a link-local address",
		"64:ff9b:1:7:a9:fea9:fe00:0": "a link-local address",
		"64:ff9b:1::a9fe:a9fe":       "a link-local address",
		"64:ff9b:1::8c52:7903":       "",
		"64:ff9b:1:8c52:79:300::":    "",
		"64:ff9b:1::7f00:1":          "",

		// 6to4, and the IPv4-compatible and IPv4-translated addresses.
		"2002:a9fe:a9fe::1":   "a link-local address",
		"2002:6464:64c8::":    "the address of a metadata server",
		"2002:8c52:7903::1":   "",
		"::169.254.169.254":   "a link-local address",
		"::ffff:0:a9fe:a9fe":  "a link-local address",
		"2002:7f00:1::":       "",
		"100.100.100.200":     "the address of a metadata server",
		"127.0.0.1":           "",
		"::ffff:127.0.0.1":    "",
		"10.0.0.1":            "",
		"192.168.1.1":         "",
		"140.82.121.3":        "",
		"2606:50c0:8000::154": "",
	} {
		g := NewWithT(t)
		err := (&Guard{Addresses: allowed}).CheckHost(address)

		if kind == "" {
			g.Expect(err).NotTo(HaveOccurred(), address)
		} else {
			g.Expect(err).To(MatchError(HavePrefix(address+" is "+kind)), address)
		}
	}

	NewWithT(t).Expect((&Guard{}).CheckHost("localhost")).To(Succeed(), "names are checked when they are resolved")
	NewWithT(t).Expect((*Guard)(nil).CheckHost("127.0.0.1")).To(Succeed())
}

func TestGuardChecksEveryConnection(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "http://[::1]:1/inner", http.StatusFound)
		}
	}))
	defer server.Close()

	address := server.Listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

	for name, c := range map[string]struct {
		guard               *Guard
		proxy, url, refused string
	}{
		"a loopback address": {
			&Guard{}, "", server.URL, "127.0.0.1 is a loopback address, to which the operator does not " +
				"connect; use another address, or allow it with the operator's flag --allowed-source-addresses",
		},
		"a name of a loopback address": {
			&Guard{}, "", "http://localhost:" + port, "localhost is a loopback address",
		},
		"an allowed address": {&Guard{Addresses: loopback}, "", server.URL, ""},
		"no guard":           {nil, "", server.URL, ""},
		"a redirect": {
			&Guard{Addresses: loopback}, "", server.URL + "/redirect", "::1 is a loopback address",
		},
		"the API server, which no flag allows": {
			&Guard{Addresses: loopback, APIServers: []string{"localhost:" + port}}, "", server.URL,
			"127.0.0.1 is the API server's address (" + address + "), to which the operator does not connect; use another",
		},
		"a proxy": {
			&Guard{}, server.URL, "http://source.example.com", "127.0.0.1 is a loopback address",
		},
		"an allowed proxy": {
			&Guard{Addresses: loopback}, server.URL, "http://source.example.com", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			client, err := NewHTTP(Options{Guard: c.guard, Proxy: c.proxy})
			g.Expect(err).NotTo(HaveOccurred())

			res, err := client.Get(c.url) //nolint:noctx // a test
			if c.refused != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.refused)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(res.Body.Close()).To(Succeed())
			g.Expect(res.StatusCode).To(Equal(http.StatusOK))
		})
	}
}

func TestDial(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()

	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	guarded := &Guard{}
	allowed := &Guard{Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

	for name, c := range map[string]struct {
		guard         *Guard
		host, refused string
	}{
		"a special address": {
			guarded, "127.0.0.1", "127.0.0.1 is a loopback address, to which the operator does not connect; ",
		},
		"a name of one":      {guarded, "localhost", "localhost is a loopback address"},
		"an allowed address": {allowed, "127.0.0.1", ""},
		"a name of one that is allowed, beside another that is not": {allowed, "localhost", ""},
		"no guard": {nil, "127.0.0.1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			conn, err := c.guard.Dial(t.Context(), "tcp", net.JoinHostPort(c.host, port))
			if c.refused != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.refused)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(conn.Close()).To(Succeed())
		})
	}
}
