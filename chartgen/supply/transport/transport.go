// Package connect is how servers that have something to be fetched are connected to: whose
// certificates are trusted, which one is shown to them, and through which proxy.
package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"slices"
)

// Options of a connection, named as the keys of the Secret that they come from. All are optional.
type Options struct {
	// CA certificates in PEM that are trusted beside the system's, under ca.crt.
	CA []byte
	// Certificate and Key in PEM, to show to servers that ask for one, under tls.crt and tls.key.
	Certificate, Key []byte
	// Proxy is the URL of a proxy, with its user and password if it asks for them, instead of the
	// environment's.
	Proxy string
}

// New makes Go's own transport with these options. No error holds any of them.
func New(o Options) (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}

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
			return nil, errors.New("proxy is not a proxy's URL such as http://proxy.example.com:3128")
		}

		t.Proxy = http.ProxyURL(proxy)
	}

	return t, nil
}
