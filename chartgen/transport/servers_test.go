package transport

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// times answers the first n requests with a handler and all others with "fine".
func times(n int64, answer http.HandlerFunc) http.HandlerFunc {
	var count atomic.Int64

	return func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1) <= n {
			answer(w, r)
			return
		}

		_, _ = io.WriteString(w, "fine")
	}
}

// answer returns a handler that responds with a status and headers, each "Name: value".
func answer(status int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}

		w.WriteHeader(status)
	}
}

// cut announces more than it sends, then closes the connection.
func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, "half")
	hangUp(w)
}

func hangUp(w http.ResponseWriter) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

// endless sends data without end, as fast as the client reads.
func endless(w http.ResponseWriter, _ *http.Request) {
	block := bytes.Repeat([]byte("a: b\n"), 1<<12)
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// bomb returns a handler whose response is a gigabyte after decompression.
func bomb() http.HandlerFunc {
	var packed bytes.Buffer

	z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)

	block := make([]byte, 1<<20)
	for range 1 << 10 {
		_, _ = z.Write(block)
	}

	_ = z.Close()

	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}
}

func plainAsGzip(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = io.WriteString(w, "this is plain text")
}

// slow sends a byte every 20 milliseconds until the client leaves.
func slow(w http.ResponseWriter, r *http.Request) {
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-r.Context().Done():
			tick.Stop()
			return
		case <-tick.C:
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
		}
	}
}
