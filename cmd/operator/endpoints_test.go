package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
)

func TestPprofAddress(t *testing.T) {
	for address, want := range map[string]string{
		"":               "",
		"0":              "",
		"localhost:6060": "localhost:6060",
		"127.0.0.1:6060": "127.0.0.1:6060",
		"[::1]:6060":     "[::1]:6060",
	} {
		e := endpoints{pprof: address}
		NewWithT(t).Expect(e.pprofAddress()).To(Equal(want), address)
	}

	for _, address := range []string{":6060", "0.0.0.0:6060", "[::]:6060", "10.0.0.1:6060", "example.org:6060", "6060"} {
		e := endpoints{pprof: address}
		_, err := e.pprofAddress()
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("must be a loopback address")), address)
	}
}

func TestMissingCertificate(t *testing.T) {
	g := NewWithT(t)
	e := endpoints{metrics: ":8443", secure: true, certificate: t.TempDir()}

	_, err := e.tlsConfig(nil)
	g.Expect(err).To(MatchError(ContainSubstring("--metrics-cert-path needs a folder with tls.crt and tls.key")))
}

func TestHealth(t *testing.T) {
	handler := newHealthHandler()

	for path, code := range map[string]int{
		"/healthz": http.StatusOK, "/healthz/ping": http.StatusOK,
		"/readyz": http.StatusOK, "/readyz/ping": http.StatusOK,
		"/healthz/other": http.StatusNotFound, "/": http.StatusNotFound,
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		NewWithT(t).Expect(answer.Code).To(Equal(code), path)
	}
}
