package faults

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// SetSkew sets how far the API server's clock is ahead of that of its clients, from now on: the dates of its
// answers, and the times that it has written into objects. Watches are not changed.
func (f *Faults) SetSkew(skew time.Duration) { f.skew.Store(int64(skew)) }

// skewed sends a request to an API server with another clock.
func skewed(next http.RoundTripper, request *http.Request, skew time.Duration) (*http.Response, error) {
	if skew == 0 || request.URL.Query().Has("watch") {
		return next.RoundTrip(request)
	}

	request = request.Clone(request.Context())
	request.Header.Del("Accept-Encoding")
	request.Header.Set("Accept", withoutProtobuf(request.Header.Get("Accept")))

	response, err := next.RoundTrip(request)
	if err != nil {
		return nil, err
	}

	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()

	if err != nil {
		return nil, err
	}

	body = shift(body, skew)
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))

	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		response.Header.Set("Date", date.Add(skew).UTC().Format(http.TimeFormat))
	}

	return response, nil
}

// withoutProtobuf returns the accepted formats without binary ones.
func withoutProtobuf(accept string) string {
	var formats []string

	for format := range strings.SplitSeq(accept, ",") {
		if !strings.Contains(format, "protobuf") {
			formats = append(formats, format)
		}
	}

	return strings.Join(formats, ",")
}

// written matches the times that an API server writes.
var written = regexp.MustCompile(`"(creationTimestamp|deletionTimestamp|time)":"([^"]+)"`)

// shift adds the skew to the times of an answer in JSON.
func shift(body []byte, skew time.Duration) []byte {
	return written.ReplaceAllFunc(body, func(match []byte) []byte {
		parts := written.FindSubmatch(match)

		at, err := time.Parse(time.RFC3339, string(parts[2]))
		if err != nil {
			return match
		}

		return []byte(`"` + string(parts[1]) + `":"` + at.Add(skew).Format(time.RFC3339) + `"`)
	})
}
