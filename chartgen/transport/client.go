package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"
)

// Client downloads small files from web servers. It is safe for concurrent use.
type Client struct {
	http    *http.Client
	login   auth.Credential
	echo    Echo // finds the login
	origins []string
	// timeout limits a Get including all its attempts.
	timeout time.Duration
}

// NewClient returns a client that sends a login, a token or else a user name and a password, to the given origins only,
// see Origin.
func NewClient(o Options, login auth.Credential, origins ...string) (*Client, error) {
	client, err := NewHTTP(o)
	if err != nil {
		return nil, err
	}

	echo := NewEcho(append(BasicAuth(login.Username, login.Password), login.AccessToken)...)

	return &Client{http: client, login: login, echo: echo, origins: origins, timeout: 90 * time.Second}, nil
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

// Get downloads a file, with several attempts within 90 seconds.
func (c *Client) Get(ctx context.Context, r Request) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil) // of others than nil, no retry is sent
	if err != nil {
		return nil, &Error{
			Place: "the source's URL", Kind: Refused, Problem: "it cannot be read", Fix: "write it as https://host/path",
		}
	}

	c.setHeader(req, r.Accept)

	res, err := c.get(req, r.Limit)

	return res, Wrap(RedactURL(req.URL), req.URL.Host, err)
}

// setHeader sets the header of a request.
func (c *Client) setHeader(req *http.Request, accept string) {
	req.Header.Set("User-Agent", "capstan")

	if accept != "" {
		req.Header.Set("Accept", accept)
	}

	switch {
	case !slices.Contains(c.origins, Origin(req.URL)):
	case c.login.AccessToken != "":
		req.Header.Set("Authorization", "Bearer "+c.login.AccessToken)
	case c.login.Username != "" || c.login.Password != "":
		req.SetBasicAuth(c.login.Username, c.login.Password)
	}
}

// get sends a request.
func (c *Client) get(req *http.Request, limit int64) (*Response, error) {
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()

	if err := checkStatus(RedactURL(req.URL), res); err != nil {
		return nil, err
	}

	body, err := readBody(res, limit)
	if err != nil {
		return nil, err
	}

	if c.echo.In(body) {
		return nil, ErrEcho
	}

	return &Response{Body: body, Header: res.Header}, nil
}

// readBody reads the body up to a limit in bytes. net/http decompresses the body while it is read,
// so the limit holds for compression bombs too.
func readBody(res *http.Response, limit int64) ([]byte, error) {
	tooLarge := &Error{
		Kind: Invalid, Problem: fmt.Sprintf("it is larger than %d KiB, which no such file is", limit>>10),
		Fix: "correct the address",
	}

	if res.ContentLength > limit {
		return nil, tooLarge
	}

	var body bytes.Buffer
	if res.ContentLength > 0 {
		body.Grow(int(res.ContentLength) + bytes.MinRead)
	}

	if _, err := body.ReadFrom(io.LimitReader(res.Body, limit+1)); err != nil {
		return nil, err
	}

	if int64(body.Len()) > limit {
		return nil, tooLarge
	}

	if isHTML(res.Header.Get("Content-Type"), body.Bytes()) {
		return nil, &Error{
			Problem: "it is a web page instead of the file, perhaps a login page",
			Fix:     "open it in a browser, and correct the address or add credentials",
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
