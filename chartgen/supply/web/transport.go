package web

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"slices"
)

// TransportOptions configure a transport: which certificate authorities it trusts, which client certificate
// it presents, which proxy it uses, and where it may connect to. All are optional; each but the
// guard corresponds to a key of the Secret with a source's credentials.
type TransportOptions struct {
	// CA holds PEM certificates of authorities to trust in addition to the system's; key ca.crt.
	CA []byte
	// Certificate and Key are the client certificate in PEM; keys tls.crt and tls.key.
	Certificate, Key []byte
	// Proxy is the URL of an http, https or socks5 proxy, including its credentials if it needs
	// any. It replaces the proxy of the environment. Key proxy.
	Proxy string
	// Guard restricts the connections; nil for no restriction.
	Guard *Guard
}

// NewTransport returns a clone of http.DefaultTransport with the options applied. Errors name the key that
// is invalid and never contain its value.
func NewTransport(o TransportOptions) (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}

	if o.Guard != nil {
		t.DialContext = o.Guard.dial
	}

	if len(o.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}

		if !pool.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("ca.crt holds no certificate in PEM form, as -----BEGIN CERTIFICATE-----")
		}

		t.TLSClientConfig.RootCAs = pool
	}

	if len(o.Certificate) > 0 || len(o.Key) > 0 {
		pair, err := tls.X509KeyPair(o.Certificate, o.Key)
		if err != nil {
			return nil, errors.New("tls.crt and tls.key are not a certificate and its key in PEM form")
		}

		t.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}

	if o.Proxy != "" {
		proxy, err := url.Parse(o.Proxy)
		if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
			return nil, errors.New("proxy is not the URL of a proxy such as http://proxy.example.com:3128")
		}

		t.Proxy = http.ProxyURL(proxy)
	}

	return t, nil
}
