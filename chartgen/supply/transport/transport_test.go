package transport

import (
	"net/http"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
)

func TestNewRejects(t *testing.T) {
	const secret = "hush"

	for name, test := range map[string]struct {
		options Options
		message string
	}{
		"a CA that is not PEM":        {options: Options{CA: []byte(secret)}, message: "ca.crt"},
		"a certificate without a key": {options: Options{Certificate: []byte(secret)}, message: "tls.crt and tls.key"},
		"a key without a certificate": {options: Options{Key: []byte(secret)}, message: "tls.crt and tls.key"},
		"a proxy without a scheme":    {options: Options{Proxy: secret + ":3128"}, message: "URL of a proxy"},
		"a proxy with another scheme": {options: Options{Proxy: "ftp://" + secret + "@proxy"}, message: "URL of a proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(test.options)
			NewWithT(t).Expect(err).
				To(MatchError(And(ContainSubstring(test.message), Not(ContainSubstring(secret)))))
		})
	}
}

func TestNewProxy(t *testing.T) {
	g := NewWithT(t)
	transport, err := New(Options{Proxy: "socks5://me:pass@proxy.example.com:1080"})
	g.Expect(err).NotTo(HaveOccurred())

	proxy, err := transport.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "example.com"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(proxy.String()).To(Equal("socks5://me:pass@proxy.example.com:1080"))
}
