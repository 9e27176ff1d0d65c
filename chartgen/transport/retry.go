package transport

import (
	"net/http"
	"strconv"
	"time"

	"oras.land/oras-go/v2/registry/remote/retry"
)

const (
	// maxRetries is how often a request is sent again whose answer does not begin.
	maxRetries = 3
	// maxPause is how long a server may ask to wait. For a longer time, the caller can do something else.
	maxPause = 5 * time.Second
	// defaultRateLimit applies when a server does not say when its rate limit ends.
	defaultRateLimit = time.Minute
)

// retries are those of oras, but for servers that ask to wait longer. A body that is cut is an error, after which the
// operator reconciles again, and a command can be run again.
var retries = &retry.GenericPolicy{
	Retryable: func(res *http.Response, err error) (bool, error) {
		if res != nil {
			if until, stated := rateLimit(res); stated && time.Until(until) > maxPause {
				return false, nil
			}
		}

		return retry.DefaultPredicate(res, err)
	},
	Backoff:  pause,
	MaxWait:  maxPause,
	MaxRetry: maxRetries,
}

// pause returns how long to wait for the next attempt: as long as the server asks for, which oras reads with one status
// and in seconds only.
func pause(attempt int, res *http.Response) time.Duration {
	if res != nil {
		if until, stated := rateLimit(res); stated {
			return time.Until(until)
		}
	}

	return retry.DefaultBackoff(attempt, res)
}

// rateLimit returns when an exceeded rate limit ends, or the zero time if none is exceeded, and whether the server
// states that. Servers report one by status 429, by 503 with a Retry-After header, or, like GitHub, by 403 with
// Retry-After or a remaining limit of 0.
func rateLimit(res *http.Response) (until time.Time, stated bool) {
	after := res.Header.Get("Retry-After")
	exhausted := res.Header.Get("X-RateLimit-Remaining") == "0"

	switch res.StatusCode {
	case http.StatusTooManyRequests:
	case http.StatusServiceUnavailable:
		if after == "" {
			return time.Time{}, false
		}
	case http.StatusForbidden:
		if after == "" && !exhausted {
			return time.Time{}, false
		}
	default:
		return time.Time{}, false
	}

	now := time.Now()
	if seconds, err := strconv.Atoi(after); err == nil && seconds >= 0 {
		return now.Add(time.Duration(min(seconds, 24*60*60)) * time.Second), true
	}

	if date, err := http.ParseTime(after); err == nil {
		return date, true
	}

	if reset, err := strconv.ParseInt(res.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil && exhausted {
		return time.Unix(reset, 0), true
	}

	return now.Add(defaultRateLimit), false
}
