// Package web gets small files from web servers that cannot be trusted to behave: the size of an
// answer and the time for it are bounded, what can pass is tried again, credentials go to nobody
// but the server that they are for, and an error names the URL and the remedy.
package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client gets files.
type Client struct {
	http *http.Client
	// total bounds a Get with all its attempts; pause is the one before the second attempt, and
	// doubles.
	total, pause time.Duration
}

const (
	maxAttempts = 4
	// longestPause is how long a Get waits because a server asks it to. For more, the caller should
	// come back.
	maxPause = 5 * time.Second
	// shortestLimit is for servers that say they have enough and not for how long.
	defaultRateLimit = time.Minute
)

// New makes a client whose credentials go to the given origins (see Origin) only. Its error is a
// *CredentialsError.
func New(credentials Credentials, origins ...string) (*Client, error) {
	t, err := newTransport(credentials, origins)
	if err != nil {
		return nil, err
	}

	return &Client{
		http:  &http.Client{Transport: t, CheckRedirect: checkRedirect},
		total: 90 * time.Second,
		pause: 500 * time.Millisecond,
	}, nil
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	const most = 10
	if len(via) >= most {
		return &redirectError{fmt.Sprintf("more than %d times", most)}
	}

	if req.URL.Scheme != "https" && via[0].URL.Scheme == "https" {
		return &redirectError{"from https to http, where anybody on the way can change what is installed"}
	}

	return nil
}

// Request is for one file.
type Request struct {
	URL string
	// Accept is the media type to ask for; empty means any.
	Accept string
	// Limit is the greatest size in bytes, after decompression.
	Limit int64
}

// Response is a whole answer.
type Response struct {
	Body   []byte
	Header http.Header
}

// Get gets a file. Its errors are *StatusError, *LimitError, *ContentError and *UnreachableError.
func (c *Client) Get(ctx context.Context, r Request) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.total)
	defer cancel()

	pause := c.pause
	for attempt := 1; ; attempt++ {
		res, err := c.attempt(ctx, r)
		if err == nil {
			return res, nil
		}

		wait, again := retry(err, pause)
		if !again || attempt == maxAttempts {
			return nil, err
		}

		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}

		pause *= 2
	}
}

// retry reports whether an error may pass by itself soon, and when.
func retry(err error, pause time.Duration) (time.Duration, bool) {
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
		return jitter(pause), status.Status >= http.StatusInternalServerError || status.Status == http.StatusRequestTimeout
	case errors.As(err, &unreachable):
		return jitter(pause), unreachable.temporary()
	}

	return 0, false
}

func jitter(pause time.Duration) time.Duration {
	return pause + rand.N(pause/4+1) //nolint:gosec // it keeps clients apart, and is no secret
}

// once makes one attempt.
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

	body, err := read(address, res, r.Limit)
	if err != nil {
		return nil, err
	}

	return &Response{Body: body, Header: res.Header}, nil
}

// checkStatus makes an error of any answer other than success.
func checkStatus(address string, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}

	if until := rateLimitReset(res); !until.IsZero() {
		return &RateLimitError{URL: address, Until: until}
	}

	return &StatusError{URL: address, Status: res.StatusCode}
}

// limitedUntil reads the signs of a used up limit: the status that is made for it, or GitHub's
// headers beside a 403. The zero time means that there is none.
func rateLimitReset(res *http.Response) time.Time {
	after := res.Header.Get("Retry-After")
	exhausted := res.Header.Get("X-RateLimit-Remaining") == "0"

	busy := res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable && after != ""
	if !busy && (res.StatusCode != http.StatusForbidden || !exhausted && after == "") {
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

// read reads the body up to the limit. What the server compressed is decompressed on the way, so
// the limit holds for bombs too.
func read(address string, res *http.Response, limit int64) ([]byte, error) {
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
			URL:    address,
			Reason: "is a web page instead of the file, a login page perhaps; open it in a browser, and correct the URL or add credentials",
		}
	}

	return body.Bytes(), nil
}

// isPage reports whether an answer is for a browser.
func isHTML(contentType string, body []byte) bool {
	if strings.HasPrefix(strings.ToLower(contentType), "text/html") {
		return true
	}

	const enough = 512

	head := bytes.ToLower(bytes.TrimLeft(body[:min(len(body), enough)], "\ufeff \t\r\n"))

	return bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html"))
}

// Plain is a URL as it may be shown: without user, password and query, which may hold credentials.
func RedactURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
