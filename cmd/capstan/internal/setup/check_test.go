package setup

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// TestCheck: an API server that is too old is refused before anything changes, and missing permissions are a warning.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		version       string
		allowed       bool
		want, warning string
	}{
		"as needed":       {version: "v1.36.1", allowed: true},
		"of a cloud":      {version: "v1.34.2-gke.100+abc", allowed: true},
		"too old":         {version: "v1.29.9", allowed: true, want: ">=1.30.0-0, and the API server has v1.29.9"},
		"few permissions": {version: "v1.36.1", warning: "Warning: the API server may refuse a part of the installation"},
		"both at once":    {version: "v1.29.9", want: "nothing was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"gitVersion": %q}`, c.version)
			}))
			t.Cleanup(server.Close)

			reviews := interceptor.NewClient(nil, interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					o.(*authorizationv1.SelfSubjectAccessReview).Status.Allowed = c.allowed
					return nil
				},
			})
			cluster := &cli.Cluster{Config: &rest.Config{Host: server.URL}, Client: reviews}
			streams, _, _, warnings := genericiooptions.NewTestIOStreams()
			o := &options{Options: &cli.Options{IOStreams: streams}}

			err := o.check(t.Context(), cluster, &setupPlan{operator: newOperator(t)})
			if c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(c.want)))
			}

			g.Expect(warnings.String()).To(HavePrefix(c.warning))
			g.Expect(warnings.String() == "").To(Equal(c.warning == ""))
		})
	}
}
