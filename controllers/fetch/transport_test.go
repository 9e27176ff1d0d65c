package fetch

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/controllers/access"
)

const operatorToken = "ghp_of-the-operator"

// spy is a proxy that answers all requests itself, as any host, and asks registries' clients for
// credentials.
type spy struct {
	// proxy is its URL, and ca the authority of its certificates, in PEM.
	proxy, ca string
	// address of the server behind the proxy.
	address string

	mu   sync.Mutex
	seen []string
}

// newSpy starts a spy with a certificate for the hosts.
func newSpy(t *testing.T, hosts ...string) *spy {
	t.Helper()

	certificate, ca := selfSigned(t, hosts)
	s := &spy{ca: ca}

	inner := httptest.NewUnstartedServer(http.HandlerFunc(s.answer))
	inner.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	inner.StartTLS()
	t.Cleanup(inner.Close)

	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			s.answer(w, r)
			return
		}

		tunnel(w, inner.Listener.Addr().String())
	}))
	t.Cleanup(outer.Close)

	s.proxy = outer.URL
	s.address = inner.Listener.Addr().String()

	return s
}

// answer records the request's credentials and refuses it.
func (s *spy) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, r.Host+r.URL.Path+" "+r.Header.Get("Authorization"))
	s.mu.Unlock()

	w.Header().Set("WWW-Authenticate", `Basic realm="spy"`)
	w.WriteHeader(http.StatusUnauthorized)
}

// credentials returns the requests that had an Authorization header.
func (s *spy) credentials() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.DeleteFunc(slices.Clone(s.seen), func(request string) bool { return strings.HasSuffix(request, " ") })
}

// requests returns the number of requests.
func (s *spy) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()

	return len(s.seen)
}

// tunnel connects the client of a CONNECT request to an address.
func tunnel(w http.ResponseWriter, address string) {
	there, err := net.Dial("tcp", address)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}

	here, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		_ = there.Close()
		return
	}

	fmt.Fprint(here, "HTTP/1.1 200 OK\r\n\r\n")

	go func() { _, _ = io.Copy(there, bufio.NewReader(buffered)); _ = there.Close() }()
	go func() { _, _ = io.Copy(here, there); _ = here.Close() }()
}

// selfSigned returns a certificate for hosts and its PEM.
func selfSigned(t *testing.T, hosts []string) (tls.Certificate, string) {
	t.Helper()

	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: hosts, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())

	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})

	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(encoded)
}

func TestOwnCredentialsStayOnOwnTransport(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", operatorToken)

	for name, c := range map[string]struct {
		provider string
		config   v1alpha2.FetchConfiguration
	}{
		"an artifact":                     {"x", v1alpha2.FetchConfiguration{OCI: registryHost + "/x"}},
		"an image":                        {"x", v1alpha2.FetchConfiguration{Image: registryHost + "/x"}},
		"a registry without TLS":          {"x", v1alpha2.FetchConfiguration{OCI: "http://" + registryHost + "/x"}},
		"a project on GitHub":             {"x", v1alpha2.FetchConfiguration{URL: "https://github.com/o/p/releases"}},
		"a project on GitHub without TLS": {"x", v1alpha2.FetchConfiguration{URL: "http://github.com/o/p/releases"}},
		"a provider of the catalog":       {"aws", v1alpha2.FetchConfiguration{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSpy(t, registryHost, "github.com", "api.github.com")
			r := newRegistryResolver(t)
			r.Readers = &access.Readers{APIReader: newReader(map[string]map[string]string{
				"transport": {"proxy": s.proxy, "ca.crt": s.ca},
			})}

			c.config.SecretRef = &v1alpha2.LocalSecretReference{Name: "transport"}

			found, err := r.Source(provider(c.provider, fetching(c.config)))
			g.Expect(err).NotTo(HaveOccurred())

			_, err = found.Fetch(t.Context(), source.Version{Name: "v1.0.0"})
			g.Expect(err).To(HaveOccurred())
			g.Expect(s.requests()).To(BeNumerically(">", 0), "the proxy of the Secret is used")
			g.Expect(s.credentials()).To(BeEmpty())
		})
	}
}

func TestOwnTokenIsNotForTenants(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", operatorToken)

	private := v1alpha2.FetchConfiguration{URL: "https://github.com/bank/private/releases"}

	for name, c := range map[string]struct {
		account string
		config  v1alpha2.FetchConfiguration
		want    string
	}{
		"a project that a resource names":                       {"", private, operatorToken},
		"a project that a resource with an account names":       {"installer", private, ""},
		"a provider of the catalog for a resource with account": {"installer", v1alpha2.FetchConfiguration{}, operatorToken},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSpy(t, "github.com", "api.github.com")
			s.impersonate(t)

			p := provider("aws", fetching(c.config))
			p.GetSpec().ServiceAccountName = c.account

			found, err := newRegistryResolver(t).Source(p)
			g.Expect(err).NotTo(HaveOccurred())

			_, err = found.Fetch(t.Context(), source.Version{Name: "v1.0.0"})
			g.Expect(err).To(HaveOccurred())

			if c.want == "" {
				g.Expect(s.credentials()).To(BeEmpty())
			} else {
				g.Expect(s.credentials()).To(ContainElement(HaveSuffix("Bearer " + c.want)))
			}
		})
	}
}

// impersonate makes the spy answer all connections over TLS of the operator's own transport.
func (s *spy) impersonate(t *testing.T) {
	t.Helper()

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(s.ca))

	transport := http.DefaultTransport.(*http.Transport)
	transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		dialer := &tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: host}}

		return dialer.DialContext(ctx, network, s.address)
	}

	t.Cleanup(func() { transport.DialTLSContext = nil })
}
