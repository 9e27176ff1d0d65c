package main

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/capstan-project/capstan/test/bed"
)

// requests are those to all targets. Unlike in an audit log, a watch is one of them when it begins.
type requests struct {
	mu  sync.Mutex
	all []bed.Request
}

// add notes a request to the target with a namespace, which becomes the request's user.
func (s *requests) add(namespace string, info *request.RequestInfo, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.all = append(s.all, bed.Request{
		User: namespace, Verb: info.Verb, Group: info.APIGroup, Resource: info.Resource, Subresource: info.Subresource,
		Namespace: info.Namespace, Name: info.Name, URI: r.URL.RequestURI(), DryRun: r.URL.Query().Has("dryRun"),
		Received: time.Now(),
	})
}

// to returns the requests to some targets since a time.
func (s *requests) to(targets []*target, begin time.Time) []bed.Request {
	wanted := map[string]bool{}
	for _, t := range targets {
		wanted[t.namespace] = true
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	var found []bed.Request

	for _, r := range s.all {
		if wanted[r.User] && !r.Received.Before(begin) {
			found = append(found, r)
		}
	}

	return found
}
