package source_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// refuse trusts nothing.
func refuse(_ context.Context, ref oci.Reference, _ string) error {
	return &transport.Error{Kind: transport.Unverified, Problem: ref.String() + " is not signed"}
}

func TestArtifactIsVerified(t *testing.T) {
	g := NewWithT(t)
	c, base := runRegistry(t)
	pinned := pushFiles(t, c, base+"unsigned:v1.0.0", map[string]string{"metadata.yaml": "a", "components.yaml": "b"})
	a := newArtifact(t, c, base+"unsigned", source.OCIOptions{
		Trust: func(context.Context) (string, error) { return "signed with the key a", nil },
	})

	_, err := a.Files(t.Context(), source.Version{Name: "v1.0.0"})
	g.Expect(err).To(MatchError(pinned.String() + " is not signed"))
}

// What is required of signatures is part of the origin, so content that was stored under other
// conditions is not used.
func TestOriginNamesTrust(t *testing.T) {
	g := NewWithT(t)
	c, base := runRegistry(t)
	required := ""
	a := newArtifact(t, c, base+"x", source.OCIOptions{
		Trust: func(context.Context) (string, error) { return required, nil },
	})
	origins := map[string]bool{}

	for _, required = range []string{"", "signed with the key a", "signed with the key b"} {
		version, err := a.Resolve(t.Context(), source.Request{Version: "v1.0.0"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(version.Origin.String()).To(And(HavePrefix(base+"x:v1.0.0"), HaveSuffix(required)))
		origins[version.Origin.String()] = true
	}

	g.Expect(origins).To(HaveLen(3))

	failed := errors.New("the keys cannot be read")
	a = newArtifact(t, c, base+"x", source.OCIOptions{Trust: func(context.Context) (string, error) { return "", failed }})
	_, err := a.Resolve(t.Context(), source.Request{Version: "v1.0.0"})
	g.Expect(err).To(MatchError(failed))
}
