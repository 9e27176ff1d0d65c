package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// answers is a server that gives its answers one after another, and then succeeds.
type answers struct {
	left   []answer
	bodies []string // of the requests so far
}

type answer struct {
	status int
	header http.Header
	err    error
}

func (a *answers) RoundTrip(request *http.Request) (*http.Response, error) {
	body := ""

	if request.Body != nil {
		read, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}

		body = string(read)
	}

	a.bodies = append(a.bodies, body)

	next := answer{status: http.StatusOK}
	if len(a.left) > 0 {
		next, a.left = a.left[0], a.left[1:]
	}

	if next.err != nil {
		return nil, next.err
	}

	return &http.Response{StatusCode: next.status, Header: next.header, Body: http.NoBody}, nil
}

func newRequest(ctx context.Context, method, path, contentType string) *http.Request {
	request, err := http.NewRequestWithContext(ctx, method, "https://server"+path, strings.NewReader("body"))
	if err != nil {
		panic(err)
	}

	request.Header.Set("Content-Type", contentType)

	return request
}

func TestRequestsThatAreRepeated(t *testing.T) {
	for name, tt := range map[string]struct {
		method, path, contentType string
		want                      bool
	}{
		"get":                  {http.MethodGet, "/api/v1/pods", "", true},
		"watch":                {http.MethodGet, "/api/v1/pods?watch=true", "", false},
		"delete":               {http.MethodDelete, "/api/v1/pods/x", "", true},
		"merge patch":          {http.MethodPatch, "/x", "application/merge-patch+json", true},
		"strategic patch":      {http.MethodPatch, "/x", "application/strategic-merge-patch+json", true},
		"apply":                {http.MethodPatch, "/x", "application/apply-patch+yaml", true},
		"JSON patch":           {http.MethodPatch, "/x", "application/json-patch+json", false},
		"create":               {http.MethodPost, "/api/v1/pods", "", false},
		"dry run of a create":  {http.MethodPost, "/api/v1/pods?dryRun=All", "", true},
		"review":               {http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", true},
		"create named reviews": {http.MethodPost, "/apis/example.com/v1/reviews", "", false},
		"update":               {http.MethodPut, "/x", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := &answers{left: []answer{{status: http.StatusInternalServerError}}}

			response, err := Wrap(server).RoundTrip(newRequest(t.Context(), tt.method, tt.path, tt.contentType))
			g.Expect(err).NotTo(HaveOccurred())

			defer response.Body.Close()

			if tt.want {
				g.Expect(response.StatusCode).To(Equal(http.StatusOK))
				g.Expect(server.bodies).To(Equal([]string{"body", "body"}))
			} else {
				g.Expect(response.StatusCode).To(Equal(http.StatusInternalServerError))
				g.Expect(server.bodies).To(HaveLen(1))
			}
		})
	}
}

func TestFailuresThatAreRepeated(t *testing.T) {
	for name, tt := range map[string]struct {
		answer answer
		want   bool
	}{
		"500":                {answer{status: http.StatusInternalServerError}, true},
		"503":                {answer{status: http.StatusServiceUnavailable}, true},
		"504":                {answer{status: http.StatusGatewayTimeout}, true},
		"429":                {answer{status: http.StatusTooManyRequests}, true},
		"429 with its time":  {answer{status: http.StatusTooManyRequests, header: http.Header{"Retry-After": {"1"}}}, false},
		"403":                {answer{status: http.StatusForbidden}, false},
		"409":                {answer{status: http.StatusConflict}, false},
		"connection reset":   {answer{err: syscall.ECONNRESET}, true},
		"connection closed":  {answer{err: io.EOF}, true},
		"connection refused": {answer{err: syscall.ECONNREFUSED}, false},
		"timeout":            {answer{err: fmt.Errorf("send: %w", context.DeadlineExceeded)}, false},
		"unknown":            {answer{err: errors.New("no response within 30s")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := &answers{left: []answer{tt.answer}}

			response, err := Wrap(server).RoundTrip(newRequest(t.Context(), http.MethodGet, "/x", ""))
			if err == nil {
				defer response.Body.Close()
			}

			if tt.want {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(server.bodies).To(HaveLen(2))
			} else {
				g.Expect(server.bodies).To(HaveLen(1))
			}
		})
	}
}

func TestRepetitionsAreBounded(t *testing.T) {
	g := NewWithT(t)
	server := &answers{left: make([]answer, 100)}

	for i := range server.left {
		server.left[i].status = http.StatusInternalServerError
	}

	response, err := Wrap(server).RoundTrip(newRequest(t.Context(), http.MethodGet, "/x", ""))
	g.Expect(err).NotTo(HaveOccurred())

	defer response.Body.Close()

	g.Expect(response.StatusCode).To(Equal(http.StatusInternalServerError), "the last answer")
	g.Expect(server.bodies).To(HaveLen(attempts))
}

func TestRepetitionsEndWithTheContext(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0

	err := Do(ctx, func() (bool, error) {
		calls++

		cancel()

		return true, io.EOF
	})
	g.Expect(err).To(MatchError(io.EOF))
	g.Expect(calls).To(Equal(1))
}
