package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-project/capstan/test/bed"
)

var begin = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

var requests = []bed.Request{
	{Verb: "get", Resource: "secrets", Received: begin},
	{Verb: "patch", Resource: "deployments", Received: begin.Add(time.Second)},
	{Verb: "patch", Resource: "deployments", DryRun: true, Received: begin.Add(2 * time.Second)},
	{Verb: "patch", Resource: "coreproviders", Subresource: "status", Received: begin.Add(3 * time.Second)},
	{Verb: "get", URI: "/openapi/v3?hash=1", Received: begin.Add(4 * time.Second)},
	{Verb: "get", Resource: "secrets", Received: begin.Add(5 * time.Second)},
}

func TestByKind(t *testing.T) {
	const want = "     6 in total, of which 2 write\n" +
		"     2 get secrets\n" +
		"     1 get /openapi/v3\n" +
		"     1 patch coreproviders/status\n" +
		"     1 patch deployments\n" +
		"     1 patch deployments (dry run)\n"
	if diff := cmp.Diff(want, byKind(requests)); diff != "" {
		t.Error(diff)
	}
}

func TestSince(t *testing.T) {
	if later := since(requests, begin.Add(3*time.Second)); len(later) != 2 || writesOf(later) != 0 {
		t.Errorf("%d requests are later, of which %d write; want 2 and 0", len(later), writesOf(later))
	}
}

func TestInOrder(t *testing.T) {
	const want = " 1.000 s, 0.020 s: patch deployments a/b: 200\n" +
		" 4.000 s, 0.000 s: get /openapi/v3 /: 0\n"

	patch := requests[1]
	patch.Namespace, patch.Name, patch.Code, patch.Duration = "a", "b", 200, 20*time.Millisecond

	if diff := cmp.Diff(want, inOrder([]bed.Request{requests[4], patch}, begin)); diff != "" {
		t.Error(diff)
	}
}
