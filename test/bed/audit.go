package bed

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"
)

// Request is a request that the API server has answered, as recorded in its audit log.
type Request struct {
	User      string // the user, or the impersonated user
	UserAgent string
	// get, list, watch, create, update, patch, delete or deletecollection; the HTTP method for
	// requests to paths that are not resources
	Verb        string
	Group       string // API group; empty for the core group
	Resource    string // plural, e.g. "deployments"; empty for other paths, e.g. /openapi/v3
	Subresource string
	Namespace   string
	Name        string
	URI         string // path and query
	Code        int    // HTTP status
	DryRun      bool
	Received    time.Time
	Duration    time.Duration // time until the last byte of the response
}

// Lease reports whether the request is about a Lease: leader election and heartbeats.
func (r Request) Lease() bool { return r.Group == "coordination.k8s.io" && r.Resource == "leases" }

// Write reports whether the request tries to change what is stored. Reviews such as
// SubjectAccessReview are created but never stored, so they do not count.
func (r Request) Write() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		review := r.Group == "authorization.k8s.io" || r.Group == "authentication.k8s.io"
		return !r.DryRun && !review
	}

	return false
}

// Requests reads the audit log and returns the requests for which keep returns true, in the order
// in which they were answered; a nil keep returns all of them. A request is logged when it is
// answered, so the latest one may still be missing. A watch is logged when it ends.
func (b *Bed) Requests(keep func(Request) bool) ([]Request, error) {
	if b.options.WithoutAudit {
		return nil, errors.New("the bed was started without an audit log")
	}

	all, err := b.audit.read(b.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}

	if keep == nil {
		return slices.Clone(all), nil
	}

	var requests []Request

	for _, request := range all {
		if keep(request) {
			requests = append(requests, request)
		}
	}

	return requests, nil
}

// auditReader reads each line of an audit log once.
type auditReader struct {
	mu       sync.Mutex
	offset   int64     // of the next line
	requests []Request // of the lines before
}

// read returns the requests in the log. The caller must not change them.
func (r *auditReader) read(path string) ([]Request, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	if _, err := file.Seek(r.offset, io.SeekStart); err != nil {
		return nil, err
	}

	for reader := bufio.NewReaderSize(file, 1<<20); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return r.requests, nil // the last line is still being written
		}

		if err != nil {
			return nil, err
		}

		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("line at %d of %s: %w", r.offset, path, err)
		}

		r.requests = append(r.requests, event.request())
		r.offset += int64(len(line))
	}
}

// Count counts requests by a key of each, such as its user, verb or resource.
func Count(requests []Request, key func(Request) string) map[string]int {
	counts := map[string]int{}
	for _, request := range requests {
		counts[key(request)]++
	}

	return counts
}

// auditEvent has the fields of kind Event of audit.k8s.io/v1 that are used here.
type auditEvent struct {
	RequestURI string
	Verb       string
	User       struct{ Username string }
	// ImpersonatedUser, if set, is the user that the request counts for.
	ImpersonatedUser *struct{ Username string }
	UserAgent        string
	ObjectRef        struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
}

func (e auditEvent) request() Request {
	user := e.User.Username
	if e.ImpersonatedUser != nil {
		user = e.ImpersonatedUser.Username
	}

	dryRun := false
	if uri, err := url.ParseRequestURI(e.RequestURI); err == nil {
		dryRun = uri.Query().Has("dryRun")
	}

	return Request{
		User:        user,
		UserAgent:   e.UserAgent,
		Verb:        e.Verb,
		Group:       e.ObjectRef.APIGroup,
		Resource:    e.ObjectRef.Resource,
		Subresource: e.ObjectRef.Subresource,
		Namespace:   e.ObjectRef.Namespace,
		Name:        e.ObjectRef.Name,
		URI:         e.RequestURI,
		Code:        e.ResponseStatus.Code,
		DryRun:      dryRun,
		Received:    e.RequestReceivedTimestamp,
		Duration:    e.StageTimestamp.Sub(e.RequestReceivedTimestamp),
	}
}
