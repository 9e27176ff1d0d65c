package v1alpha2

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxReleaseName is the length of a release name that Helm accepts.
const maxReleaseName = 53

// ReleaseName returns the name of a provider's Helm release: the provider's label, shortened with a
// hash where it is longer than Helm's limit of 53 characters.
func ReleaseName(p Provider) string { return releaseName(Label(p)) }

func releaseName(label string) string {
	if len(label) <= maxReleaseName {
		return label
	}

	const hashLength = 12

	sum := sha256.Sum256([]byte(label))
	hash := hex.EncodeToString(sum[:])[:hashLength]

	return strings.TrimRight(label[:maxReleaseName-hashLength-1], "-.") + "-" + hash
}

// FullName returns a provider's kind, namespace and name for messages, such as
// "InfrastructureProvider capa-system/aws".
func FullName(p Provider) string {
	return string(p.ProviderType()) + " " + p.GetNamespace() + "/" + p.GetName()
}
