package clusters

import (
	"net/http"
	"strings"
	"sync"
)

// What an object or list, and any other value, takes in memory at least after it was decoded, in bytes.
// In the response it takes as few as 3 and 2.
const (
	objectMemory = 400
	valueMemory  = 24
)

// decoded estimates the memory for the documents that a remote API server is sending.
type decoded struct {
	mu    sync.Mutex
	bytes int64
}

func (d *decoded) add(bytes int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()

	d.bytes += bytes

	return d.bytes
}

// document estimates the memory for the JSON document that a response is in the middle of. A watch sends
// one document after the other.
type document struct {
	all               *decoded
	bytes             int64
	depth             int
	inString, escaped bool
}

// read notes the next part of the response, and reports whether all documents together take more memory
// than the limit.
func (d *document) read(part []byte, limit int64) bool {
	var added int64

	for _, c := range part {
		switch {
		case d.escaped:
			d.escaped = false
		case d.inString:
			d.escaped = c == '\\'
			d.inString = c != '"'
		case c == '"':
			d.inString = true
		case c == '{', c == '[':
			d.depth++
			added += objectMemory
		case c == ',':
			added += valueMemory
		case c == '}', c == ']':
			d.depth--
		}

		if d.bytes+added > limit {
			break
		}

		if d.depth <= 0 && !d.inString {
			added = -d.bytes
			d.depth = 0
		}
	}

	d.bytes += added

	return d.all.add(added) > limit
}

// end notes that the response has been read.
func (d *document) end() { d.all.add(-d.bytes) }

// acceptJSON returns the request with JSON as the only format that it accepts: the memory for other
// formats cannot be estimated.
func acceptJSON(request *http.Request) *http.Request {
	var accepted []string

	for _, format := range strings.Split(request.Header.Get("Accept"), ",") {
		if strings.HasPrefix(strings.TrimSpace(format), jsonFormat) {
			accepted = append(accepted, format)
		}
	}

	if len(accepted) == 0 {
		accepted = []string{jsonFormat}
	}

	changed := request.Clone(request.Context())
	changed.Header.Set("Accept", strings.Join(accepted, ","))

	return changed
}

// expectJSON lets a response be decoded as JSON, whatever the API server calls it. The text of an error is
// not decoded.
func expectJSON(response *http.Response) {
	format := response.Header.Get("Content-Type")
	isText := response.StatusCode >= http.StatusBadRequest && strings.HasPrefix(format, "text/")

	if !isText && !strings.HasPrefix(format, jsonFormat) {
		response.Header.Set("Content-Type", jsonFormat)
	}
}

const jsonFormat = "application/json"
