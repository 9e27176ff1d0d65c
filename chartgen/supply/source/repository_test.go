package source_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

func TestCheckTag(t *testing.T) {
	c, base := runRegistry(t)
	g := NewWithT(t)
	first := pushFiles(t, c, base+"moved:v1.0.0", map[string]string{"metadata.yaml": "a"})
	second := pushFiles(t, c, base+"moved:tmp", map[string]string{"metadata.yaml": "b"})
	desc, err := c.Resolve(t.Context(), second)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Repository(second).Tag(t.Context(), desc, "v1.0.0")).To(Succeed())

	made, err := chart.New(chart.Metadata{APIVersion: "v2", Name: "c", Version: "2.0.0"}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	ref, err := oci.Parse(base + "moved:2.0.0")
	g.Expect(err).NotTo(HaveOccurred())
	pushed, err := c.PushChart(t.Context(), ref, made)
	g.Expect(err).NotTo(HaveOccurred())

	other := digest.FromString("another")

	for name, test := range map[string]struct {
		address, version string
		options          source.OCIOptions
		installed        source.Digests
		want             digest.Digest
	}{
		"moved to another manifest": {
			address:   "moved",
			version:   "v1.0.0",
			installed: source.Digests{Manifest: first.Digest},
			want:      second.Digest,
		},
		"not moved": {
			address:   "moved",
			version:   "v1.0.0",
			installed: source.Digests{Manifest: second.Digest},
		},
		"deleted": {
			address:   "moved",
			version:   "v3.0.0",
			installed: source.Digests{Manifest: first.Digest},
		},
		"pinned by the address": {
			address:   "moved:v1.0.0@" + first.Digest.String(),
			version:   "v1.0.0",
			installed: source.Digests{Manifest: first.Digest},
		},
		"pinned by the digest": {
			address:   "moved",
			version:   "v1.0.0",
			options:   source.OCIOptions{Digest: first.Digest.String()},
			installed: source.Digests{Manifest: first.Digest},
		},
		"moved to another chart": {
			address:   "moved",
			version:   "v2.0.0",
			installed: source.Digests{Manifest: other, Chart: other},
			want:      pushed.Reference.Digest,
		},
		"another manifest of the same chart": {
			address:   "moved",
			version:   "v2.0.0",
			installed: source.Digests{Manifest: other, Chart: digest.Digest(pushed.Digest)},
		},
		"unknown chart": {address: "moved", version: "v2.0.0", want: pushed.Reference.Digest},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a := newArtifact(t, c, base+test.address, test.options)
			current, err := a.CheckTag(t.Context(), a.Version(test.version), test.installed)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(current.Digest).To(Equal(test.want))
		})
	}
}

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
