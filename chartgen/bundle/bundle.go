// Package bundle holds what a Cluster API provider publishes for one version:
// its components, its metadata and the cluster templates beside them. It reads
// these files and says what is in them; it needs no cluster and no network.
package bundle

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"sort"
)

// File names of a provider's release, as the clusterctl provider contract has them.
const (
	// MetadataFile maps the provider's release series to Cluster API contracts.
	MetadataFile = "metadata.yaml"
	// ComponentsFile is how messages call the components when the name under which they were
	// published is not known.
	ComponentsFile = "components.yaml"
)

// Provider says whose bundle it is.
type Provider struct {
	// Type is clusterctl's provider type, for example "InfrastructureProvider".
	Type string
	// Name is the provider's name, for example "aws".
	Name string
	// Label is clusterctl's manifest label, for example "infrastructure-aws". It is the chart's and
	// the release's name.
	Label string
}

// File is a named file of a bundle.
type File struct {
	Name string
	Data []byte
}

// Bundle is one version of one provider, as published.
type Bundle struct {
	Provider Provider
	// Version is the provider's version with its leading "v".
	Version string
	// Source says where the files come from, for people; it is no part of the content ID.
	Source string
	// Components is the multi-document YAML with variables not yet substituted.
	Components []byte
	// Metadata is the content of metadata.yaml.
	Metadata []byte
	// Templates are the cluster-template*.yaml and clusterclass-*.yaml files.
	Templates []File
}

// ContentID identifies the inputs: the hex SHA-256 over the provider, the version and all files.
// Two bundles with the same ID give the same chart.
func (b *Bundle) ContentID() string {
	h := sha256.New()
	for _, part := range []string{b.Provider.Type, b.Provider.Name, b.Provider.Label, b.Version} {
		hashPart(h, []byte(part))
	}

	hashPart(h, b.Components)
	hashPart(h, b.Metadata)
	templates := append([]File(nil), b.Templates...)
	sort.Slice(templates, func(i, j int) bool { return templates[i].Name < templates[j].Name })

	for _, t := range templates {
		hashPart(h, []byte(t.Name))
		hashPart(h, t.Data)
	}

	return hex.EncodeToString(h.Sum(nil))
}

// CheckDigest makes sure that the components have a digest, "sha256:" and 64 hexadecimal digits; an
// empty one is always right. Its error is an *InvalidError.
func (b *Bundle) CheckDigest(want string) error {
	if want == "" {
		return nil
	}

	sum := sha256.Sum256(b.Components)
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != want {
		return &InvalidError{
			File: ComponentsFile,
			Reason: fmt.Sprintf(
				"of %s has the digest %s, not %s; find out who changed it, and correct spec.fetchConfig.digest if it is right as it is",
				b.Version,
				got,
				want,
			),
		}
	}

	return nil
}

// hashPart writes part with its length before it, so that no two lists of parts give the same
// stream.
func hashPart(h hash.Hash, part []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(part)))
	h.Write(size[:])
	h.Write(part)
}

// InvalidError says which published file is wrong, where, and why. The same bytes will always give
// it again: whoever gets it waits for other bytes.
type InvalidError struct {
	// File is the name of the file.
	File string
	// Line is the line in the file, from 1; 0 when the whole file is meant.
	Line int
	// Reason says what is wrong and what to do about it.
	Reason string
	// Err is the cause, if there is one.
	Err error
}

func (e *InvalidError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s line %d: %s", e.File, e.Line, e.Reason)
	}

	return fmt.Sprintf("%s: %s", e.File, e.Reason)
}

func (e *InvalidError) Unwrap() error { return e.Err }
