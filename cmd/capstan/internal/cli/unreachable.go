package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/chartgen/transport"
)

// UnreachableError means that there is no connection to the API server.
type UnreachableError struct {
	// server is its address, and origin what the address is from.
	server, origin string
	err            error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the API server %s does not answer: %v; check that it runs, and that %s is right, or select "+
		"another cluster with --kubeconfig or --context", e.server, e.err, e.origin)
}

// Unwrap returns the error of the connection.
func (e *UnreachableError) Unwrap() error { return e.err }

// explain makes the clients of a configuration return an *UnreachableError without a connection.
func (f *ClusterFlags) explain(config *rest.Config) *rest.Config {
	origin := "its address"

	raw, err := f.kubectl.ToRawKubeConfigLoader().RawConfig()
	if err == nil {
		name := cmp.Or(*f.kubectl.Context, raw.CurrentContext)
		if used := raw.Contexts[name]; used != nil {
			origin = "context " + name + " of " + used.LocationOfOrigin
		}
	}

	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &explainer{next, origin} })

	return config
}

// explainer explains errors of connections.
type explainer struct {
	http.RoundTripper

	origin string
}

// RoundTrip sends a request.
func (e *explainer) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := e.RoundTripper.RoundTrip(request)

	failed := new(net.OpError)
	if errors.As(err, &failed) && failed.Op == "dial" {
		err = &UnreachableError{transport.Origin(request.URL), e.origin, err}
	}

	return response, err
}
