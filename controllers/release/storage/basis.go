package storage

import (
	"crypto/sha256"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

const (
	// InputsLabel is what a revision was created from: the digests of variables, additional manifests
	// and source, separated by dots.
	InputsLabel = v1alpha2.Prefix + "/inputs"

	// EnvironmentLabel is where a revision was created: the digests of the operator's settings, separated by
	// underscores.
	EnvironmentLabel = v1alpha2.Prefix + "/environment"
)

// unused is written for an empty part of a basis.
const unused = "none"

// BasisDigest returns the digest of a part of a state.Basis: 80 bits, since several fit into a label.
func BasisDigest(content []byte) string {
	const length = 16

	sum := sha256.Sum256(content)

	return EncodeLabel(sum[:])[:length]
}

// basisLabels returns the labels that record a basis; none for an unknown one.
func basisLabels(b state.Basis) map[string]string {
	if b == (state.Basis{}) {
		return nil
	}

	join := func(separator string, parts ...string) string {
		for i, part := range parts {
			if part == "" {
				parts[i] = unused
			}
		}

		return strings.Join(parts, separator)
	}

	return map[string]string{
		InputsLabel:      join(".", b.Variables, b.Manifests, b.Source),
		EnvironmentLabel: join("_", b.ImageRegistry, b.ImageOverrides, b.Managers),
	}
}

// basisOf returns the basis that labels record; zero if they record none.
func basisOf(labels map[string]string) state.Basis {
	inputs := strings.Split(labels[InputsLabel], ".")
	environment := strings.Split(labels[EnvironmentLabel], "_")

	if len(inputs) != 3 || len(environment) != 3 {
		return state.Basis{}
	}

	used := func(part string) string { return strings.TrimSuffix(part, unused) }

	return state.Basis{
		Variables:      used(inputs[0]),
		Manifests:      used(inputs[1]),
		Source:         used(inputs[2]),
		ImageRegistry:  used(environment[0]),
		ImageOverrides: used(environment[1]),
		Managers:       used(environment[2]),
	}
}
