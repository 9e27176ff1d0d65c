package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/transport"
)

func TestPick(t *testing.T) {
	all := []string{"v1.9.11", "v1.10.0", "v1.13.5", "v1.14.0", "v1.15.0-rc.1"}
	for name, test := range map[string]struct {
		available                 []string
		requested, pinned, picked string
		message                   string
	}{
		"an exact version":                     {available: all, requested: "v1.13.5", picked: "v1.13.5"},
		"without the v":                        {available: all, requested: "1.13.5", picked: "v1.13.5"},
		"a pre-release by name":                {available: all, requested: "v1.15.0-rc.1", picked: "v1.15.0-rc.1"},
		"the newest that is not a pre-release": {available: all, picked: "v1.14.0"},
		"a pre-release if there is nothing else": {
			available: []string{"v1.0.0-beta.1", "v1.0.0-beta.2"},
			picked:    "v1.0.0-beta.2",
		},
		"the newest by number, not by string": {available: []string{"v1.9.0", "v1.10.0"}, picked: "v1.10.0"},
		"the newest in a range":               {available: all, requested: ">=1.9 <1.14", picked: "v1.13.5"},
		"the newest patch":                    {available: all, requested: "~1.13", picked: "v1.13.5"},
		"a minor version":                     {available: all, requested: "v1.13", picked: "v1.13.5"},
		"the pinned one, while it matches": {
			available: all,
			requested: "~1",
			pinned:    "v1.10.0",
			picked:    "v1.10.0",
		},
		"the pinned one, without a version": {available: all, pinned: "v1.9.11", picked: "v1.9.11"},
		"another, if the pinned one does not match": {
			available: all,
			requested: "~1.13",
			pinned:    "v1.10.0",
			picked:    "v1.13.5",
		},
		"another, if the pinned one is gone": {available: all, pinned: "v1.8.0", picked: "v1.14.0"},
		"a missing version": {
			available: all,
			requested: "v9.9.9",
			message:   "version v9.9.9 is not available; the source has v1.15.0-rc.1, v1.14.0, v1.13.5, v1.10.0, v1.9.11",
		},
		"a range without a match": {
			available: all,
			requested: "~2",
			message:   "version ~2 is not available",
		},
		"neither version nor range": {
			available: all,
			requested: "newest",
			message:   `version "newest" is neither a semantic version such as v1.13.5 nor a range`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			picked, err := Pick(ParseVersions(test.available), test.requested, test.pinned)
			if test.message != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.message)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(picked.Name).To(Equal(test.picked))
		})
	}
}

func TestDirectory(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "infrastructure-x")
	write := func(name, content string) {
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}
	write("v1.9.0/metadata.yaml", "old")
	write("v1.10.0/infrastructure-components.yaml", "components")
	write("v1.10.0/metadata.yaml", "metadata")
	write("v1.10.0/cluster-template.yaml", "template")
	write("v1.10.0/clusterclass-quick.yaml", "class")
	write("v1.10.0/unrelated.yaml", "unrelated")
	write("docs/readme.md", "not a version")
	write("v01.11.0/metadata.yaml", "not a version")

	d, err := NewDirectory(dir)
	g.Expect(err).NotTo(HaveOccurred())
	versions, err := d.Versions(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(versions).To(HaveExactElements(HaveField("Name", "v1.10.0"), HaveField("Name", "v1.9.0")))

	b, err := d.Fetch(t.Context(), versions[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.Provider).
		To(And(HaveField("Type", "InfrastructureProvider"), HaveField("Name", "x"), HaveField("Label", "infrastructure-x")))
	g.Expect(string(b.Components)).To(Equal("components"))
	g.Expect(string(b.Metadata)).To(Equal("metadata"))
	g.Expect(b.Templates).
		To(HaveExactElements(HaveField("Name", "cluster-template.yaml"), HaveField("Name", "clusterclass-quick.yaml")))

	_, err = d.Fetch(t.Context(), versions[1])
	g.Expect(err).To(MatchError(ContainSubstring(
		"infrastructure-x/v1.9.0: has no *-components.yaml, but only metadata.yaml; add that of v1.9.0, or choose another")))

	empty, err := NewDirectory(t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = empty.Versions(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("holds no version folder")))
}

func TestIsUnavailable(t *testing.T) {
	g := NewWithT(t)

	for _, err := range []error{
		&transport.Error{Kind: transport.Unavailable},
		&transport.Error{Kind: transport.Denied},
		&transport.Error{Kind: transport.InvalidToken},
		&transport.Error{Kind: transport.Untrusted},
		context.DeadlineExceeded,
	} {
		g.Expect(IsUnavailable(err)).To(BeTrue(), "%v", err)
	}

	for _, err := range []error{
		nil,
		errors.New("anything else"),
		&transport.Error{Kind: transport.NotFound},
		&transport.Error{Kind: transport.Invalid},
		&transport.Error{Kind: transport.Refused},
		&transport.Error{Kind: transport.Unverified, Err: context.DeadlineExceeded},
		&bundle.InvalidError{},
	} {
		g.Expect(IsUnavailable(err)).To(BeFalse(), "%v", err)
	}
}
