// Package faults makes requests to an API server fail, before or after they took effect.
package faults

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Faults decide which requests fail, and how. They are safe for concurrent use.
type Faults struct {
	mu     sync.Mutex
	random *rand.Rand

	rate     atomic.Int64 // in a million
	injected atomic.Int64
	broken   atomic.Pointer[func(*http.Request) bool]
	slow     atomic.Pointer[func(*http.Request) time.Duration]
}

// New returns faults that are the same for the same seed and sequence of requests. There are none until
// SetRate.
func New(seed uint64) *Faults { return &Faults{random: rand.New(rand.NewPCG(seed, seed))} }

// SetRate sets the share of requests that fail, from 0 to 1.
func (f *Faults) SetRate(rate float64) { f.rate.Store(int64(rate * 1e6)) }

// Break makes all requests fail that match, before they take effect; nil breaks none.
func (f *Faults) Break(match func(*http.Request) bool) {
	if match == nil {
		f.broken.Store(nil)
		return
	}

	f.broken.Store(&match)
}

// Slow makes requests wait before they are sent; nil slows none.
func (f *Faults) Slow(delay func(*http.Request) time.Duration) {
	if delay == nil {
		f.slow.Store(nil)
		return
	}

	f.slow.Store(&delay)
}

// Injected returns how many requests have failed so far.
func (f *Faults) Injected() int64 { return f.injected.Load() }

// kind is a kind of fault.
type kind int

const (
	none        kind = iota
	throttled        // 429, without the time to wait
	failed           // 500, as when etcd's leader changes
	unavailable      // 503
	cut              // the connection is lost before the request is sent
	doneTimeout      // 504, after the request took effect
	doneCut          // the connection is lost after the request took effect
	kinds
)

// next returns the fault of the next request.
func (f *Faults) next() kind {
	f.mu.Lock()
	defer f.mu.Unlock()

	if int64(f.random.IntN(1e6)) >= f.rate.Load() {
		return none
	}

	f.injected.Add(1)

	return kind(1 + f.random.IntN(int(kinds)-1))
}

// Wrap returns a transport with faults, for rest.Config.Wrap. Requests about Leases are spared: they are
// not what is tested.
func (f *Faults) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if strings.Contains(request.URL.Path, "/leases") {
			return next.RoundTrip(request)
		}

		if match := f.broken.Load(); match != nil && (*match)(request) {
			f.injected.Add(1)

			return answer(request, http.StatusInternalServerError, metav1.StatusReasonInternalError), nil
		}

		if delay := f.slow.Load(); delay != nil {
			select {
			case <-request.Context().Done():
				return nil, request.Context().Err()
			case <-time.After((*delay)(request)):
			}
		}

		return f.send(next, request)
	})
}

func (f *Faults) send(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	fault := f.next()
	if fault == none {
		return next.RoundTrip(request)
	}

	watches := request.URL.Query().Has("watch")

	if fault >= doneTimeout && !watches {
		response, err := next.RoundTrip(request)
		if err != nil {
			return nil, err
		}

		_, err = io.Copy(io.Discard, response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return nil, err
		}
	}

	switch fault {
	case throttled:
		return answer(request, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), nil
	case failed:
		return answer(request, http.StatusInternalServerError, metav1.StatusReasonInternalError), nil
	case unavailable:
		return answer(request, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), nil
	case doneTimeout:
		return answer(request, http.StatusGatewayTimeout, metav1.StatusReasonTimeout), nil
	default:
		return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, syscall.ECONNRESET)
	}
}

// answer returns an answer of an API server that reports an error.
func answer(request *http.Request, code int, reason metav1.StatusReason) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,`+
		`"message":"an injected fault"}`, code, reason)

	return &http.Response{
		Status:        fmt.Sprintf("%d %s", code, http.StatusText(code)),
		StatusCode:    code,
		Proto:         request.Proto,
		ProtoMajor:    request.ProtoMajor,
		ProtoMinor:    request.ProtoMinor,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       request,
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
