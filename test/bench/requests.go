package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capstan-project/capstan/test/bed"
)

// requestsOf returns the requests of a user that the API server has received since a time. A watch is one of them
// when it ends.
func requestsOf(b *bed.Bed, user string, begin time.Time) ([]bed.Request, error) {
	return b.Requests(func(r bed.Request) bool { return r.User == user && !r.Received.Before(begin) })
}

// since returns the requests that were received after a time.
func since(requests []bed.Request, begin time.Time) []bed.Request {
	var later []bed.Request

	for _, r := range requests {
		if r.Received.After(begin) {
			later = append(later, r)
		}
	}

	return later
}

// writesOf returns the number of requests that try to change what is stored.
func writesOf(requests []bed.Request) int {
	n := 0

	for _, r := range requests {
		if r.Write() {
			n++
		}
	}

	return n
}

// byKind returns a table of the requests with the same verb, resource and subresource, the most frequent first.
func byKind(requests []bed.Request) string {
	counts := bed.Count(requests, kindOf)

	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}

		return strings.Compare(a, b)
	})

	table := &strings.Builder{}
	fmt.Fprintf(table, "%6d in total, of which %d write\n", len(requests), writesOf(requests))

	for _, kind := range kinds {
		fmt.Fprintf(table, "%6d %s\n", counts[kind], kind)
	}

	return table.String()
}

// kindOf returns the verb of a request and what it is about.
func kindOf(r bed.Request) string {
	resource := strings.Trim(strings.Join([]string{r.Resource, r.Subresource}, "/"), "/")
	if resource == "" {
		resource, _, _ = strings.Cut(r.URI, "?")
	}

	if r.DryRun {
		resource += " (dry run)"
	}

	return r.Verb + " " + resource
}

// inOrder returns a table of requests with the time since a stage has begun, and how long each took.
func inOrder(requests []bed.Request, begin time.Time) string {
	requests = slices.SortedFunc(slices.Values(requests), func(a, b bed.Request) int {
		return a.Received.Compare(b.Received)
	})

	table := &strings.Builder{}
	for _, r := range requests {
		fmt.Fprintf(table, "%6.3f s, %.3f s: %s %s/%s: %d\n",
			r.Received.Sub(begin).Seconds(), r.Duration.Seconds(), kindOf(r), r.Namespace, r.Name, r.Code)
	}

	return table.String()
}
