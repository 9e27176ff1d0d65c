package transport

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"
)

const limit = 1 << 20

// TestMain shortens the pauses between attempts and in a transfer.
func TestMain(m *testing.M) {
	stallTimeout = 500 * time.Millisecond
	retries.Backoff = retry.ExponentialBackoff(time.Millisecond, 1, 0)

	os.Exit(m.Run())
}

// newClient returns a client with short timeouts.
func newClient(t *testing.T, options Options, login auth.Credential, origins ...string) *Client {
	t.Helper()

	c, err := NewClient(options, login, origins...)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	c.timeout = 3 * time.Second

	return c
}

func TestGet(t *testing.T) {
	hour := fmt.Sprint(time.Now().Add(time.Hour).Unix())
	for name, test := range map[string]struct {
		handler  http.HandlerFunc
		body     string
		kind     Kind
		message  string
		requests int64
	}{
		"success":                      {handler: times(0, nil), body: "fine", requests: 1},
		"rate limit that ends at once": {handler: times(2, answer(429, "Retry-After: 0")), body: "fine", requests: 3},
		"rate limit of an hour": {
			handler:  answer(429, "Retry-After: 3600"),
			kind:     Unavailable,
			message:  "accepts no more requests until",
			requests: 1,
		},
		"rate limit until a date": {
			handler:  answer(429, "Retry-After: "+time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)),
			kind:     Unavailable,
			message:  "until",
			requests: 1,
		},
		"rate limit of unknown length": {
			handler:  answer(429),
			kind:     Unavailable,
			message:  "most servers accept more",
			requests: 4,
		},
		"GitHub's primary rate limit": {
			handler:  answer(403, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: "+hour),
			kind:     Unavailable,
			message:  "until",
			requests: 1,
		},
		"GitHub's secondary rate limit": {
			handler:  answer(403, "Retry-After: 60"),
			kind:     Unavailable,
			message:  "until",
			requests: 1,
		},
		"maintenance": {
			handler:  answer(503, "Retry-After: 600"),
			kind:     Unavailable,
			message:  "accepts no more requests until",
			requests: 1,
		},
		"temporary server error": {handler: times(3, answer(502)), body: "fine", requests: 4},
		"permanent server error": {
			handler:  answer(500),
			kind:     Unavailable,
			message:  "the server answers 500 Internal Server Error",
			requests: 4,
		},
		"connection cut": {
			handler:  cut,
			kind:     Unavailable,
			message:  "the connection was cut; check the network",
			requests: 1,
		},
		"no response": {
			handler:  func(w http.ResponseWriter, _ *http.Request) { hangUp(w) },
			kind:     Unavailable,
			message:  "EOF; check that",
			requests: 1,
		},
		"endless slow body": {
			handler:  slow,
			kind:     Unavailable,
			message:  "did not answer in time",
			requests: 1,
		},
		"stalled body": {
			handler: func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "some")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			},
			message:  "the connection stalled",
			requests: 1,
		},
		"endless fast body": {
			handler:  endless,
			kind:     Invalid,
			message:  "is larger than 1024 KiB",
			requests: 1,
		},
		"large Content-Length": {
			handler:  answer(200, "Content-Length: 2147483648"),
			kind:     Invalid,
			message:  "is larger than 1024 KiB",
			requests: 1,
		},
		"compression bomb": {
			handler:  bomb(),
			kind:     Invalid,
			message:  "is larger than 1024 KiB",
			requests: 1,
		},
		"invalid gzip": {
			handler:  plainAsGzip,
			kind:     Unavailable,
			message:  "gzip: invalid header",
			requests: 1,
		},
		"missing file": {
			handler:  answer(404),
			kind:     NotFound,
			message:  "the server answers 404 Not Found; correct the version or the address",
			requests: 1,
		},
		"missing credentials": {
			handler:  answer(401),
			kind:     Denied,
			message:  "the server answers 401 Unauthorized; give credentials that allow this",
			requests: 1,
		},
		"HTML by its type": {
			handler:  answer(200, "Content-Type: text/html; charset=utf-8"),
			kind:     Unavailable,
			message:  "is a web page instead of the file",
			requests: 1,
		},
		"HTML by its content": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				_, _ = io.WriteString(w, "\ufeff\n <!DOCTYPE html>\n<html>…")
			},
			kind:     Unavailable,
			message:  "is a web page instead of the file",
			requests: 1,
		},
		"redirect loop": {
			handler:  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) },
			kind:     Refused,
			message:  "redirects more than 10 times",
			requests: 10,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)

			var requests atomic.Int64

			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				test.handler(w, r)
			}))
			t.Cleanup(server.Close)
			res, err := newClient(t, Options{}, auth.EmptyCredential).
				Get(t.Context(), Request{URL: server.URL + "/file?secret=hush", Limit: limit})

			g.Expect(requests.Load()).To(Equal(test.requests))

			if test.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(res.Body)).To(Equal(test.body))

				return
			}

			g.Expect(Is(err, test.kind)).To(BeTrue(), "%v", err)
			g.Expect(err).
				To(MatchError(
					And(ContainSubstring(test.message), ContainSubstring(server.URL+"/file"), Not(ContainSubstring("hush"))),
				))
		})
	}
}

func TestGetBoundsMemory(t *testing.T) {
	g := NewWithT(t)

	const sixteen = 16 << 20

	for name, handler := range map[string]http.HandlerFunc{"endless": endless, "bomb": bomb()} {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)

		var before, after runtime.MemStats

		runtime.GC()
		runtime.ReadMemStats(&before)

		c := newClient(t, Options{}, auth.EmptyCredential)
		c.timeout = 20 * time.Second
		_, err := c.Get(t.Context(), Request{URL: server.URL, Limit: sixteen})

		runtime.ReadMemStats(&after)
		g.Expect(Is(err, Invalid)).To(BeTrue(), "%v", err)
		t.Logf("%s: %d MiB allocated for a limit of %d MiB", name, (after.TotalAlloc-before.TotalAlloc)>>20, sixteen>>20)
		g.Expect(after.TotalAlloc - before.TotalAlloc).To(BeNumerically("<", 6*sixteen))
	}
}

// TestAccept: a server that has several representations is asked for the wanted one, and any is not an empty one.
func TestAccept(t *testing.T) {
	g := NewWithT(t)

	var accepted []string

	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		accepted = r.Header.Values("Accept")
	}))
	defer server.Close()

	c := newClient(t, Options{}, auth.EmptyCredential)

	for _, accept := range []string{"application/json", ""} {
		_, err := c.Get(t.Context(), Request{URL: server.URL, Accept: accept, Limit: limit})
		g.Expect(err).NotTo(HaveOccurred())

		if accept == "" {
			g.Expect(accepted).To(BeEmpty())
		} else {
			g.Expect(accepted).To(Equal([]string{accept}))
		}
	}
}

func TestGetIsCanceled(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(slow))
	t.Cleanup(server.Close)

	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(50*time.Millisecond, cancel).Stop()

	_, err := newClient(t, Options{}, auth.EmptyCredential).Get(ctx, Request{URL: server.URL, Limit: limit})
	g.Expect(err).To(MatchError(context.Canceled), "rather than the client's own deadline")
}

func TestUnreachableServer(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())

	address := "http://" + listener.Addr().String()
	g.Expect(listener.Close()).To(Succeed())

	_, err = newClient(t, Options{}, auth.EmptyCredential).Get(t.Context(), Request{URL: address, Limit: limit})
	g.Expect(err).
		To(MatchError(And(
			ContainSubstring(address),
			ContainSubstring("connection refused"),
			ContainSubstring("can be reached from here"),
		)))
	_, err = newClient(t, Options{}, auth.EmptyCredential).
		Get(t.Context(), Request{URL: "http://[::1:x/%zz", Limit: limit})
	g.Expect(err).To(MatchError(ContainSubstring("write it as https://host/path")))
}

func TestRedactURL(t *testing.T) {
	u, err := url.Parse("https://me:pass@host:8443/a%2Fb/c?token=x#y")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(RedactURL(u)).To(Equal("https://host:8443/a%2Fb/c"))
}
