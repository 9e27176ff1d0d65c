package fetch

import (
	"context"
	"net"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/seats"
)

// A resource asks the server that it names in a seat, and takes none for anything else.
func TestSeats(t *testing.T) {
	g := NewWithT(t)

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = silent.Close() })

	kind := v1alpha2.InfrastructureProviderType
	r := &Resolver{
		Readers: &access.Readers{}, Registry: &Registry{}, Catalog: CatalogFile(DefaultConfigFile),
		Policy: newPolicy(t, "--allowed-source-addresses=127.0.0.0/8", "--allow-http-sources"),
		Seats:  map[v1alpha2.ProviderType]*seats.Seats{kind: seats.New(2)},
	}
	from := func(config v1alpha2.FetchConfiguration) *source.Source {
		found, err := r.Source(provider("aws", fetching(config)))
		g.Expect(err).NotTo(HaveOccurred())

		return found
	}
	asks := map[string]func(context.Context, *source.Source) error{
		"choose a version": func(ctx context.Context, from *source.Source) error {
			_, err := from.Resolve(ctx, source.Request{Version: "~1.0"})

			return err
		},
		"list the versions": func(ctx context.Context, from *source.Source) error {
			_, _, err := from.List(ctx)

			return err
		},
		"fetch": func(ctx context.Context, from *source.Source) error {
			_, err := from.Fetch(ctx, source.Version{Name: "v1.0.0", ID: "v1.0.0"})

			return err
		},
	}
	named := map[string]v1alpha2.FetchConfiguration{
		"http":  {HTTP: "http://" + silent.Addr().String()},
		"url":   {URL: "https://" + silent.Addr().String() + "/v1.0.0/infrastructure-components.yaml"},
		"oci":   {OCI: "oci://" + silent.Addr().String() + "/aws"},
		"image": {Image: silent.Addr().String() + "/aws"},
	}

	done, err := r.Seats[kind].Take("other")
	g.Expect(err).NotTo(HaveOccurred())

	for field, config := range named {
		for what, ask := range asks {
			err := ask(t.Context(), from(config))
			g.Expect(problem.Is(err, v1alpha2.ProgressingReason)).To(BeTrue(), field+" "+what)
			g.Expect(source.IsUnavailable(err)).To(BeTrue(), "what is stored is used meanwhile")
		}

		version, err := from(config).Resolve(t.Context(), source.Request{Version: "v1.0.0"})
		g.Expect(err).NotTo(HaveOccurred(), "nothing is asked for the name of a version")
		g.Expect(version.Name).To(Equal("v1.0.0"))
	}

	for field, config := range map[string]v1alpha2.FetchConfiguration{
		"directory": {Directory: t.TempDir()},
		"none":      {},
	} {
		g.Expect(from(config).Admit).To(BeNil(), field)
	}

	done()

	// A seat is taken while the server is asked, and free again afterwards.
	for _, ask := range asks {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()

		err := ask(ctx, from(named["oci"]))
		g.Expect(problem.Is(err, v1alpha2.ProgressingReason)).To(BeFalse())
	}

	done, err = r.Seats[kind].Take("other")
	g.Expect(err).NotTo(HaveOccurred())
	done()
}
