package web

import (
	"net/http"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
)

func TestNewTransportRejects(t *testing.T) {
	const secret = "hush"

	for name, test := range map[string]struct {
		options TransportOptions
		message string
	}{
		"a CA that is not PEM":        {TransportOptions{CA: []byte(secret)}, "ca.crt"},
		"a certificate without a key": {TransportOptions{Certificate: []byte(secret)}, "tls.crt and tls.key"},
		"a key without a certificate": {TransportOptions{Key: []byte(secret)}, "tls.crt and tls.key"},
		"a proxy without a scheme":    {TransportOptions{Proxy: secret + ":3128"}, "URL of a proxy"},
		"a proxy with another scheme": {TransportOptions{Proxy: "ftp://" + secret + "@proxy"}, "URL of a proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewTransport(test.options)
			NewWithT(t).Expect(err).
				To(MatchError(And(ContainSubstring(test.message), Not(ContainSubstring(secret)))))
		})
	}
}

func TestNewTransportProxy(t *testing.T) {
	g := NewWithT(t)
	transport, err := NewTransport(TransportOptions{Proxy: "socks5://me:pass@proxy.example.com:1080"})
	g.Expect(err).NotTo(HaveOccurred())

	proxy, err := transport.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "example.com"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(proxy.String()).To(Equal("socks5://me:pass@proxy.example.com:1080"))
}
