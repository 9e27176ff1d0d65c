// Package web downloads small files from web servers without trusting the servers: the size of a
// response and the time for it are limited, temporary failures are retried, credentials are sent
// only to the servers they belong to, and every error names the URL and the fix. The client of registries
// shares its transports, and the guard that restricts where they connect to.
package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// maxAttempts is how often Get sends a request, the first time included.
	maxAttempts = 4
	// maxPause is the longest time that Get waits because the server asks for it. For longer ones
	// Get returns the *RateLimitError, so that the caller can do something else meanwhile.
	maxPause = 5 * time.Second
	// defaultRateLimit applies when a server does not say when its rate limit ends.
	defaultRateLimit = time.Minute
)

// Client downloads files. It is safe for concurrent use.
type Client struct {
	http *http.Client
	// timeout limits a Get including all its attempts.
	timeout time.Duration
	// pause is the time before the second attempt. It doubles with each further one.
	pause time.Duration
}

// New returns a client that sends the credentials to the given origins (see Origin) only. The guard
// restricts connections and redirects; nil for no restriction. The error is a *CredentialsError.
func New(credentials Credentials, guard *Guard, origins ...string) (*Client, error) {
	t, err := newOriginTransport(credentials, guard, origins)
	if err != nil {
		return nil, err
	}

	return &Client{
		http:    &http.Client{Transport: t, CheckRedirect: CheckRedirect(guard, nil)},
		timeout: 90 * time.Second,
		pause:   500 * time.Millisecond,
	}, nil
}

// Request describes a download.
type Request struct {
	URL string
	// Accept is the media type to ask for; empty means any.
	Accept string
	// Limit is the maximum size of the body in bytes, after decompression.
	Limit int64
}

// Response is a complete response with status 200.
type Response struct {
	Body   []byte
	Header http.Header
}

// Get downloads a file, with up to four attempts within 90 seconds. Its errors are *StatusError,
// *RateLimitError, *ContentError and *UnreachableError.
func (c *Client) Get(ctx context.Context, r Request) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	pauses := wait.Backoff{Duration: c.pause, Factor: 2, Jitter: 0.25, Steps: maxAttempts} //nolint:mnd // doubled

	for {
		res, err := c.attempt(ctx, r)
		if err == nil {
			return res, nil
		}

		pause, worthwhile := retryAfter(err, pauses.Step())
		if !worthwhile || pauses.Steps == 0 {
			return nil, err
		}

		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// retryAfter returns how long to wait before the next attempt and reports whether one is worthwhile.
func retryAfter(err error, pause time.Duration) (time.Duration, bool) {
	var (
		status      *StatusError
		limit       *RateLimitError
		unreachable *UnreachableError
	)

	switch {
	case errors.As(err, &limit):
		wait := time.Until(limit.Until)
		return max(wait, pause), wait <= maxPause
	case errors.As(err, &status):
		return pause, status.Status >= http.StatusInternalServerError || status.Status == http.StatusRequestTimeout
	case errors.As(err, &unreachable):
		return pause, unreachable.temporary()
	}

	return 0, false
}

// attempt sends the request once.
func (c *Client) attempt(ctx context.Context, r Request) (*Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, http.NoBody)
	if err != nil {
		return nil, &ContentError{URL: "the source's URL", Reason: "cannot be read; write it as https://host/path"}
	}

	address := RedactURL(req.URL)
	req.Header.Set("User-Agent", "capstan")

	if r.Accept != "" {
		req.Header.Set("Accept", r.Accept)
	}

	res, err := c.http.Do(req)
	if err != nil {
		return nil, newUnreachableError(address, err)
	}
	defer res.Body.Close()

	if err := checkStatus(address, res); err != nil {
		return nil, err
	}

	body, err := readBody(address, res, r.Limit)
	if err != nil {
		return nil, err
	}

	return &Response{Body: body, Header: res.Header}, nil
}

// checkStatus returns a *RateLimitError or a *StatusError unless the status is 200.
func checkStatus(address string, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}

	if until := rateLimitReset(res); !until.IsZero() {
		return &RateLimitError{URL: address, Status: res.StatusCode, Until: until}
	}

	return &StatusError{URL: address, Status: res.StatusCode}
}

// rateLimitReset returns when an exceeded rate limit ends, or the zero time if none is exceeded.
// Servers report one by status 429, by 503 with a Retry-After header, or, like GitHub, by 403 with
// Retry-After or a remaining limit of 0.
func rateLimitReset(res *http.Response) time.Time {
	after := res.Header.Get("Retry-After")
	exhausted := res.Header.Get("X-RateLimit-Remaining") == "0"

	switch res.StatusCode {
	case http.StatusTooManyRequests:
	case http.StatusServiceUnavailable:
		if after == "" {
			return time.Time{}
		}
	case http.StatusForbidden:
		if after == "" && !exhausted {
			return time.Time{}
		}
	default:
		return time.Time{}
	}

	now := time.Now()
	if seconds, err := strconv.Atoi(after); err == nil && seconds >= 0 {
		return now.Add(time.Duration(min(seconds, 24*60*60)) * time.Second)
	}

	if date, err := http.ParseTime(after); err == nil {
		return date
	}

	if reset, err := strconv.ParseInt(res.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil && exhausted {
		return time.Unix(reset, 0)
	}

	return now.Add(defaultRateLimit)
}

// readBody reads the body up to a limit in bytes. net/http decompresses the body while it is read,
// so the limit holds for compression bombs too.
func readBody(address string, res *http.Response, limit int64) ([]byte, error) {
	tooLarge := &ContentError{
		URL:    address,
		Reason: fmt.Sprintf("is larger than %d KiB, which no such file is; correct the URL", limit>>10),
	}

	if res.ContentLength > limit {
		return nil, tooLarge
	}

	var body bytes.Buffer
	if res.ContentLength > 0 {
		body.Grow(int(res.ContentLength) + bytes.MinRead)
	}

	if _, err := body.ReadFrom(io.LimitReader(res.Body, limit+1)); err != nil {
		return nil, newUnreachableError(address, err)
	}

	if int64(body.Len()) > limit {
		return nil, tooLarge
	}

	if isHTML(res.Header.Get("Content-Type"), body.Bytes()) {
		return nil, &ContentError{
			URL: address,
			Reason: "is a web page instead of the file, perhaps a login page; " +
				"open it in a browser, and correct the URL or add credentials",
		}
	}

	return body.Bytes(), nil
}

// isHTML reports whether a response is a page for browsers. Servers send these with status 200
// where 401 or 404 would be right.
func isHTML(contentType string, body []byte) bool {
	if strings.HasPrefix(strings.ToLower(contentType), "text/html") {
		return true
	}

	const headSize = 512

	head := bytes.ToLower(bytes.TrimLeft(body[:min(len(body), headSize)], "\ufeff \t\r\n"))

	return bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html"))
}

// RedactURL returns a URL without its user, password and query, which may contain credentials.
func RedactURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
