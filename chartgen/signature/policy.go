// Package signature decides by cosign's signatures which artifacts in OCI registries are trusted. Public keys are
// given, and only the registry is contacted: no transparency log and no timestamp authority.
package signature

import (
	"context"
	"crypto"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/options"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
)

const (
	// maxSignature is the maximum size of a signature in bytes.
	maxSignature = 1 << 20
	// maxSignatures is the maximum number of signatures in a manifest, and of manifests that refer to another one, that
	// are checked.
	maxSignatures = 100
	// verifyTimeout limits the verification of an artifact, with all requests that it takes.
	verifyTimeout = 5 * time.Minute
)

// Policy configures the verification of artifacts.
type Policy struct {
	// Keys are the data of a Secret: public keys under keys that end in .pub. Everything else is ignored.
	Keys map[string][]byte
	// KeysFrom is the place of the keys for messages, for example "Secret default/keys".
	KeysFrom string
}

// String identifies what the policy trusts: it is another text for other keys.
func (p Policy) String() string {
	h := sha256.New()

	for _, name := range p.trusted() {
		fmt.Fprintf(h, "%d %d ", len(name), len(p.Keys[name]))
		h.Write([]byte(name))
		h.Write(p.Keys[name])
	}

	return fmt.Sprintf("signed with Cosign, by keys in %s (sha256:%x)", p.KeysFrom, h.Sum(nil))
}

// trusted returns the names of the public keys.
func (p Policy) trusted() []string {
	names := slices.Sorted(maps.Keys(p.Keys))

	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".pub") })
}

// Verifier returns the verifier of the policy.
func (p Policy) Verifier(client *oci.Client) (*Verifier, error) {
	v := &Verifier{client: client, keysFrom: p.KeysFrom}

	for _, name := range p.trusted() {
		public, err := cryptoutils.UnmarshalPEMToPublicKey(p.Keys[name])
		if err != nil {
			return nil, fmt.Errorf("%s is not a public key in PEM, as cosign generate-key-pair writes it", name)
		}

		keys, err := verifiers(public)
		if err != nil {
			return nil, fmt.Errorf("%s is not a key that cosign uses: %w", name, err)
		}

		v.keys = append(v.keys, keys...)
	}

	if len(v.keys) == 0 {
		return nil, errors.New("no key of the Secret with the trusted public keys ends in .pub; put cosign.pub there")
	}

	return v, nil
}

// verifiers returns one verifier for each way in which cosign signs with a key. Cosign 1 and 2 sign with SHA-256, or
// the message itself with Ed25519. Since then, sigstore's algorithm for the kind of key is the default, which is
// SHA-384 for P-384, SHA-512 for P-521, and Ed25519ph.
func verifiers(public crypto.PublicKey) ([]signature.Verifier, error) {
	former, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return nil, err
	}

	current, err := signature.LoadDefaultVerifier(public, options.WithED25519ph())
	if err != nil {
		return []signature.Verifier{former}, nil //nolint:nilerr // sigstore has none for short RSA keys
	}

	return []signature.Verifier{former, current}, nil
}

// Verifier trusts artifacts that were signed by the program cosign with one of some keys.
type Verifier struct {
	client   *oci.Client
	keysFrom string
	// keys are the public keys, each in all ways to sign with it.
	keys []signature.Verifier
}

// Verify returns an error of the kind transport.Unverified unless the manifest has a signature by one of the keys that
// does not name another version.
//
// What cannot be read hides no other signature. Only if there is no good one does the reason count: it may go away.
func (v *Verifier) Verify(ctx context.Context, ref oci.Reference, version string) error {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()

	subject, err := v.client.Resolve(ctx, ref)
	if err != nil {
		return err
	}

	found := &findings{}

	for manifest := range v.candidates(ctx, ref, subject, found) {
		for _, layer := range v.layers(ctx, manifest, found) {
			data, err := v.client.Blob(ctx, ref, layer, maxSignature)
			if err != nil {
				found.addUnread(err)
				continue
			}

			found.signatures++

			versions, valid := v.check(layer, data, subject.Digest)
			if !valid {
				continue
			}

			if found.version = otherVersion(version, versions...); found.version == "" {
				return checkManifest(ctx, v.client, ref, version)
			}
		}
	}

	if found.version != "" {
		return newVersionError(ref, found.version, version)
	}

	return v.untrusted(ref, found)
}

// findings are what was found instead of a signature that is good.
type findings struct {
	// signatures is how many layers are signatures by their media type.
	signatures int
	// version is another one that a valid signature names; empty for none.
	version string
	// unread is why something could not be read, of which there may be more. What may go away comes first.
	unread error
}

// addUnread adds the reason why something could not be read.
func (f *findings) addUnread(err error) {
	if f.unread == nil || isDamaged(f.unread) && !isDamaged(err) {
		f.unread = err
	}
}

// isDamaged reports whether an error is about content that no other attempt gets.
func isDamaged(err error) bool {
	return transport.Is(err, transport.Invalid) || transport.Is(err, transport.NotFound)
}

// untrusted returns the error of an artifact without a good signature.
func (v *Verifier) untrusted(ref oci.Reference, found *findings) error {
	unread := ""

	switch {
	case found.unread == nil:
	case isDamaged(found.unread):
		unread = fmt.Sprintf(", and not all can be read (%v)", found.unread)
	default:
		return found.unread
	}

	if found.signatures == 0 {
		return newUntrustedError(ref, "it has no cosign signature%s; sign it with a key in %s", unread, v.keysFrom)
	}

	return newUntrustedError(ref, "none of its %d cosign signatures is by a trusted key%s; check the keys in %s",
		found.signatures, unread, v.keysFrom)
}

// candidates yields the manifests that may contain signatures of the subject: first the one under cosign's tag, then
// those that refer to the subject.
func (v *Verifier) candidates(
	ctx context.Context, ref oci.Reference, subject ocispec.Descriptor, found *findings,
) iter.Seq[oci.Reference] {
	return func(yield func(oci.Reference) bool) {
		if !yield(ref.WithTag(oci.SignatureTag(subject.Digest))) {
			return
		}

		referrers, err := v.client.Referrers(ctx, ref, subject)
		if err != nil {
			found.addUnread(err)
		}

		for _, r := range referrers[:min(len(referrers), maxSignatures)] {
			if !yield(ref.WithDigest(r.Digest)) {
				return
			}
		}
	}
}

// layers returns the layers of a manifest that are signatures by their media type. The type of the manifest in the list
// of referrers is no help: some registries give that of its config. Attestations are stored like signatures, and their
// manifests name another predicate.
func (v *Verifier) layers(ctx context.Context, ref oci.Reference, found *findings) []ocispec.Descriptor {
	artifact, err := v.client.Artifact(ctx, ref)

	switch {
	case transport.Is(err, transport.NotFound) && ref.Digest == "": // there is no tag of cosign
		return nil
	case err != nil:
		found.addUnread(err)
		return nil
	}

	if predicate := artifact.Manifest.Annotations[annotationPredicate]; predicate != "" && predicate != predicateSign {
		return nil
	}

	layers := slices.DeleteFunc(artifact.Manifest.Layers, func(layer ocispec.Descriptor) bool {
		return layer.MediaType != typeSimpleSigning && !strings.HasPrefix(layer.MediaType, typeBundle)
	})

	return layers[:min(len(layers), maxSignatures)]
}

// check reports whether a layer is a signature of the subject by one of the keys, and returns the
// versions that were signed with it.
func (v *Verifier) check(layer ocispec.Descriptor, data []byte, subject digest.Digest) ([]string, bool) {
	if layer.MediaType == typeSimpleSigning {
		return v.checkPayload(layer.Annotations[annotationSignature], data, subject)
	}

	return v.checkBundle(data, subject)
}

// newUntrustedError returns the error of an artifact that is not trusted.
func newUntrustedError(ref oci.Reference, format string, args ...any) error {
	return &transport.Error{
		Kind: transport.Unverified, Place: ref.String(), Problem: "is not trusted: " + fmt.Sprintf(format, args...),
	}
}
