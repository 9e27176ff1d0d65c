package bed

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"
)

// Request is one request that the API server has answered, from its audit log.
type Request struct {
	User      string // who asked; an impersonated user is the one that counts
	UserAgent string
	// get, list, watch, create, update, patch, delete, deletecollection; the HTTP method for what
	// is no resource
	Verb        string
	Group       string // API group, empty for the core group
	Resource    string // plural, such as "deployments"; empty for what is no resource, such as /openapi/v3
	Subresource string
	Namespace   string
	Name        string
	URI         string // path and query
	Code        int    // HTTP status
	DryRun      bool
	Received    time.Time
	Duration    time.Duration // until the last byte of the answer
}

// Lease reports whether the request is about a Lease: leader election and heartbeats.
func (r Request) Lease() bool { return r.Group == "coordination.k8s.io" && r.Resource == "leases" }

// Write reports whether the request was to change what is stored. Reviews, such as
// SubjectAccessReview, are creations that store nothing.
func (r Request) Write() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		review := r.Group == "authorization.k8s.io" || r.Group == "authentication.k8s.io"
		return !r.DryRun && !review
	}

	return false
}

// Requests reads the audit log and returns, in the order of their answers, the requests that keep
// holds for; nil keeps all. A request is logged as it is answered, so one that has just been
// answered may be missing; a watch is there once it has ended.
func (b *Bed) Requests(keep func(Request) bool) ([]Request, error) {
	file, err := os.Open(b.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()

	var requests []Request

	for reader := bufio.NewReaderSize(file, 1<<20); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return requests, nil // a last line without its end is still being written
		}

		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}

		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("read the audit log %s: %w", file.Name(), err)
		}

		if request := event.request(); keep == nil || keep(request) {
			requests = append(requests, request)
		}
	}
}

// Count counts requests by whatever key tells of each, such as its user, verb or resource.
func Count(requests []Request, key func(Request) string) map[string]int {
	counts := map[string]int{}
	for _, request := range requests {
		counts[key(request)]++
	}

	return counts
}

// auditEvent is what of kind Event of audit.k8s.io/v1 is used here.
type auditEvent struct {
	RequestURI string
	Verb       string
	User       struct{ Username string }
	// ImpersonatedUser is who the request counts for, if it is set.
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
