package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// serve runs a server until the test ends, and returns its address.
func serve(t *testing.T, handler http.Handler, config *tls.Config) string {
	t.Helper()

	server, err := newServer("test", "127.0.0.1:0", handler, config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)

	go func() { ended <- server.Start(ctx) }()

	t.Cleanup(func() {
		stop()
		NewWithT(t).Expect(<-ended).To(Succeed())
	})

	return server.Listener.Addr().String()
}

// TestServerLimitsClients: a client has little room and time before the handler asks who it is, and cannot keep
// others away for longer than that.
func TestServerLimitsClients(t *testing.T) {
	g := NewWithT(t)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })

	address := serve(t, handler, nil)
	connect := func() net.Conn {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = connection.Close() })
		g.Expect(connection.SetDeadline(time.Now().Add(3 * headerTimeout))).To(Succeed())

		return connection
	}
	send := func(header string) (int, error) {
		connection := connect()
		_, _ = io.WriteString(connection, "GET / HTTP/1.1\r\nHost: a\r\n"+header+"\r\n\r\n") // it may be refused before

		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			return 0, err
		}
		defer response.Body.Close()

		g.Expect(response.Close).To(BeTrue(), "the connection is not kept")

		return response.StatusCode, nil
	}

	g.Expect(send("Authorization: Bearer " + strings.Repeat("x", 15<<10))).To(Equal(http.StatusOK))

	for _, size := range []int{21 << 10, 960 << 10} { // Go adds 4 KiB to the limit
		g.Expect(send("Authorization: Bearer " + strings.Repeat("x", size))).
			To(Equal(http.StatusRequestHeaderFieldsTooLarge))
	}

	// More connections than are served, which never send a header.
	begin := time.Now()

	for range 256 {
		_, err := io.WriteString(connect(), "GET / HTTP/1.1\r\n")
		g.Expect(err).NotTo(HaveOccurred())
	}

	g.Expect(send("")).To(Equal(http.StatusOK))
	g.Expect(time.Since(begin)).To(BeNumerically(">", 4*time.Second), "it had to wait for the five seconds of another one")
}

// TestServerLimitsHandshakes: clients that connect again and again take a limited part of the processor.
func TestServerLimitsHandshakes(t *testing.T) {
	g := NewWithT(t)
	certificate := httptest.NewTLSServer(nil)
	t.Cleanup(certificate.Close)

	address := serve(t, http.NotFoundHandler(), certificate.TLS)
	client := certificate.Client()
	connect := func() {
		response, err := client.Get("https://" + address) //nolint:noctx // it ends with the test
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
	}

	begin := time.Now()

	for range 2 * maxHandshakes {
		connect()
	}

	g.Expect(time.Since(begin)).To(BeNumerically(">=", 900*time.Millisecond), "the second hundred takes a second")
}
