// Package bundle represents what a Cluster API provider publishes for one version: its components,
// its metadata, and its cluster templates. It parses these files and describes their content. It
// needs no cluster and no network.
package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Provider identifies the provider of a bundle.
type Provider struct {
	// Type is clusterctl's provider type, for example "InfrastructureProvider".
	Type string
	// Name is the provider's name, for example "aws".
	Name string
	// Label is clusterctl's manifest label, for example "infrastructure-aws". It is also the name
	// of the chart and of the Helm release.
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
	// Version is the provider's version, with its leading "v".
	Version string
	// Source describes where the files come from, for users.
	Source string
	// Components is the multi-document YAML, before variable substitution.
	Components []byte
	// Metadata is the content of metadata.yaml.
	Metadata []byte
	// Templates are the cluster-template*.yaml and clusterclass-*.yaml files.
	Templates []File
	// Unlisted reports whether there may be more templates, because they could not be listed.
	Unlisted bool
}

// CheckDigest returns an *InvalidError unless the components have the given digest, "sha256:"
// followed by 64 hexadecimal digits. An empty digest matches any components.
func (b *Bundle) CheckDigest(want string) error {
	if want == "" {
		return nil
	}

	sum := sha256.Sum256(b.Components)

	got := "sha256:" + hex.EncodeToString(sum[:])
	if got == want {
		return nil
	}

	return &InvalidError{
		File: ComponentsFile,
		Reason: fmt.Sprintf("version %s has the digest %s, expected %s; "+
			"find out who changed it, and update spec.fetchConfig.digest if the change is intended", b.Version, got, want),
	}
}

// InvalidError reports which published file is invalid, where, and why. Retrying cannot help: the
// same bytes always produce the same error.
type InvalidError struct {
	// File is the name of the file.
	File string
	// Line is the line in the file, starting at 1, or 0 if the error concerns the whole file.
	Line int
	// Reason describes the problem and how to fix it.
	Reason string
	// Err is the underlying error, if any.
	Err error
}

func (e *InvalidError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s line %d: %s", e.File, e.Line, e.Reason)
	}

	return fmt.Sprintf("%s: %s", e.File, e.Reason)
}

func (e *InvalidError) Unwrap() error { return e.Err }
