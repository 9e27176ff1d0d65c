package clusters

import (
	"context"
	"errors"
	"net/http"
)

// newProbe returns a function that asks a server for its version. Any response will do, because the user
// may not be permitted to read it, except that the credentials are invalid: then nothing else works.
func newProbe(client *http.Client, server string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/version", http.NoBody)
		if err != nil {
			return err
		}

		response, err := client.Do(request)
		if err != nil {
			return err
		}

		if response.StatusCode == http.StatusUnauthorized {
			err = errors.New("it rejects the credentials (401 Unauthorized)")
		}

		return errors.Join(err, response.Body.Close())
	}
}

// probeKey marks the context of a probe.
type probeKey struct{}

func withProbe(ctx context.Context) context.Context { return context.WithValue(ctx, probeKey{}, true) }

func isProbe(ctx context.Context) bool { return ctx.Value(probeKey{}) != nil }
