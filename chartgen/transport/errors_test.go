package transport

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
)

func TestWrap(t *testing.T) {
	const place, server = "https://example.com/x", "example.com"

	signed := &url.Error{Op: "Get", URL: "https://storage.example.com/?signature=hush", Err: errors.New("EOF")}

	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"another package's error": {
			signed, "https://example.com/x: EOF; check that example.com can be reached from here",
		},
		"a refused address": {
			fmt.Errorf("dial: %w", (&Guard{}).CheckHost("::1")),
			"https://example.com/x: ::1 is a loopback address, to which the operator does not connect; use another " +
				"address, or allow it with the operator's flag --allowed-source-addresses",
		},
		"a known error": {
			StatusError("https://elsewhere.example.com", 500),
			"https://elsewhere.example.com: the server answers 500 Internal Server Error",
		},
		"cancellation": {fmt.Errorf("%w: %w", signed, context.Canceled), "https://example.com/x: context canceled"},
	} {
		NewWithT(t).Expect(Wrap(place, server, c.err)).To(MatchError(c.want), name)
	}

	NewWithT(t).Expect(Wrap(place, server, nil)).To(Succeed())
}
