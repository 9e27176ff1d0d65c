package source_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// refusal is a Verifier that rejects everything.
type refusal struct{}

func (refusal) Verify(_ context.Context, ref oci.Reference, _ string) error {
	return &source.UntrustedError{Message: ref.String() + " is not signed"}
}

func TestArtifactIsVerified(t *testing.T) {
	g := NewWithT(t)
	c, base := runRegistry(t)
	pinned := pushFiles(t, c, base+"unsigned:v1.0.0", map[string]string{"metadata.yaml": "a", "components.yaml": "b"})
	a := newArtifact(t, c, base+"unsigned", source.OCIOptions{
		Trust: func(context.Context) (string, error) { return "signed with the key a", nil },
	})

	for _, read := range []func() error{
		func() error { _, err := a.Fetch(t.Context(), a.Version("v1.0.0")); return err },
		func() error { _, err := a.Chart(t.Context(), a.Version("v1.0.0")); return err },
		func() error { _, err := a.Metadata(t.Context(), a.Version("v1.0.0")); return err },
	} {
		g.Expect(read()).To(MatchError(pinned.String() + " is not signed"))
	}
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
		version, err := source.Resolve(t.Context(), a, source.Request{Version: "v1.0.0"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(version.Origin).To(And(HavePrefix(base+"x:v1.0.0"), HaveSuffix(required)))
		origins[version.Origin] = true
	}

	g.Expect(origins).To(HaveLen(3))

	failed := errors.New("the keys cannot be read")
	a = newArtifact(t, c, base+"x", source.OCIOptions{Trust: func(context.Context) (string, error) { return "", failed }})
	_, err := source.Resolve(t.Context(), a, source.Request{Version: "v1.0.0"})
	g.Expect(err).To(MatchError(failed))
}
